"""Hostile calls and damaged files: no wrong answer, no raw error, no hang.

A case is a seed and a number. ``python -m tests.fuzz`` draws as many as there is time for, and
``python -m tests.fuzz --case 0:123`` replays one of them.

=============== ====================================================================================
`_trial`        one case: its calls, what counts as a refusal that is meant, its time and memory
`_run`          many cases: four numbers for each group, and the first failures
`_hostile`      arrays, labels, weights and parameters that nobody should give; priors
`_estimators`   cases of the estimators: what they answer, and what must not change the answer
`_functions`    cases of priors, tasks, studies and functions
`_files`        cases of tables, priors, models, studies and recordings in files
=============== ====================================================================================
"""

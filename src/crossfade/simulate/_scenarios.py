"""Names of the scenarios of the third study, and what each does to the model."""

#: What each scenario does to the model.
SCENARIOS = {
    "as assumed": "the paper's model holds",
    "wishart": "every target has a covariance of its own, drawn from a Wishart distribution",
    "heavy tails": "samples follow a multivariate t distribution",
    "unequal": "the second class has a larger variance",
    "shifted": "the midpoint is not the origin",
    "correlated": "neighbouring samples are alike, as neighbouring windows are",
    "two clusters": "directions have two modes at a right angle",
    "stranger": "the target's direction has nothing to do with the crowd's",
}

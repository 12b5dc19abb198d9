"""``crossfade export``: a model for a device, as C, ONNX or a schema; or its card."""

from __future__ import annotations

from pathlib import Path

import click

from crossfade._files import refuse_same_file
from crossfade.cli._options import FILE, OUT
from crossfade.cli._output import plain_messages


@click.command()
@click.argument("model", type=FILE)
@click.option(
    "-o",
    "--out",
    type=OUT,
    help="File to write: .h (C99), .onnx, or .schema.json (how to read the model file). By default "
    "the model card is printed.",
)
def export(model: Path, out: Path | None) -> None:
    """Write the model in MODEL for a device, or print its card.

    The card says for whom the model was made, from what, how accurate it is expected to be, and
    what it may tell about people. The C header needs nothing but math.h; ONNX takes `features` and
    gives `label` and `probabilities`; the JSON Schema says how label and probability follow from
    the numbers of MODEL.

    \b
    Examples:
      crossfade export model.json
      crossfade export model.json -o model.h
      crossfade export model.json -o model.onnx
      crossfade export model.json -o model.schema.json
    """
    from crossfade.blend import load_model
    from crossfade.export import export_model

    with plain_messages():
        if out is None:
            click.echo(load_model(model).card(), nl=False)
            return
        refuse_same_file(out, model)
        export_model(model, out)
    click.echo(f"Written: {out}")

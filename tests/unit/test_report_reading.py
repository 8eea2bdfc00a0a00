"""Pages as a keyboard, a screen reader, a narrow screen and a printer meet them."""

from importlib.resources import files

STYLE = files("clustered_fl.report").joinpath("templates/style.css").read_text()


def test_what_is_folded_is_printed():
    """All but the many runs; and nothing scrolls on paper."""
    printed = STYLE[STYLE.index("@media print") :]
    assert "details:not(.entry)::details-content { content-visibility: visible; }" in printed
    assert ".scroll, .guide details pre { overflow: visible;" in printed
    # It follows the rules of the screen, which it overrides.
    assert STYLE.count("@media print") == 1
    assert STYLE.index("@media print") > STYLE.index(".guide pre {")

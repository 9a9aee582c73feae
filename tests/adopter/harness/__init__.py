"""The name of a package of watermark-conformance, too; this one is the adopter's."""

GREETING = "our own harness"

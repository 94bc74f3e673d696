"""Cross-message findings, and explanations of the codes of all findings: `Capture.examine` finds them."""

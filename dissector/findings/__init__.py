"""Cross-message findings, and explanations of the codes of all findings: `Capture.findings.examine` finds them."""

"""What an examination of a capture finds (`Capture.findings.examine`), and explanations of all codes of findings."""

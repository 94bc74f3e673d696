"""What is this, from a bug report? echo '0000000d 0012 0000 00000007 0003 646576' | python hex_from_a_report.py

With an API's key and version as arguments the bytes are a response: python hex_from_a_report.py 18 3
"""

import sys

import dissector

data = bytes.fromhex(sys.stdin.read())
if len(sys.argv) == 3:
    message = dissector.decode_response(data, api_key=int(sys.argv[1]), api_version=int(sys.argv[2]))
else:
    message = dissector.decode_request(data)
for field in message.tree.walk():
    print(f"{field.start:6} {field.path:50} {'' if field.children else field.value}")
for finding in message.findings:
    print(f"{finding.severity}: {finding.message}")

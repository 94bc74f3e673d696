"""Who gets which errors? kdissect ingest *.pcapng --out tables; python tables_with_duckdb.py tables"""

import sys

import duckdb
from deltalake import DeltaTable

exchanges = DeltaTable(f"{sys.argv[1]}/exchanges").to_pyarrow_dataset()
found = duckdb.sql("""
    SELECT error, client_id, api, count(*) AS times
    FROM (SELECT *, unnest(errors) AS error FROM exchanges)
    GROUP BY ALL ORDER BY times DESC, error, client_id
""")
print(found)

"""The tables: their columns, their files, and Delta's log of them. `README.md` beside this file says which is where."""

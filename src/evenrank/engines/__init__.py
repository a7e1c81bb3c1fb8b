"""What DuckDB and Spark share: the portable SQL of an audit, reading of Parquet, roles of columns and checks."""

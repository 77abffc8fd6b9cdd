"""Drawing parameters and tables: NUTS, importance sampling, multinomials and urns."""

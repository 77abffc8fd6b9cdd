from .redrawn import redraw_table as redraw_table
from .synthetic import synthetic_tables as synthetic_tables

from .comparison import compare_protections as compare_protections

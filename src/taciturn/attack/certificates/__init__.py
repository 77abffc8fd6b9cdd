"""Certificates of bounds: proofs that a second program checks without a solver."""

from taciturn.attack.certificates.checker import CheckedBound, CheckedCertificate
from taciturn.attack.certificates.checking import check_certificate
from taciturn.attack.certificates.writing import write_certificate

__all__ = ["CheckedBound", "CheckedCertificate", "check_certificate", "write_certificate"]

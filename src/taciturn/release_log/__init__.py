"""What the next table gives away after all that was released before it."""

from taciturn.release_log.advice import Advice
from taciturn.release_log.findings import Finding
from taciturn.release_log.likely import Likely
from taciturn.release_log.log import ReleaseLog
from taciturn.release_log.swapping import RecordSwapping
from taciturn.release_log.verdict import Verdict

__all__ = ["Advice", "Finding", "Likely", "RecordSwapping", "ReleaseLog", "Verdict"]

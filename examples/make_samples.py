"""Draw the sample tables of this folder from the packaged census tables.

Run as ``python examples/make_samples.py`` from the root of the repository.
"""

from pathlib import Path

import taciturn as tc


def main() -> None:
    """Write a tenth of each census table as CSV in long form, zero cells included."""
    for name in ("area_by_religion", "area_by_country_of_birth", "area_by_mode_of_travel"):
        sample = tc.draw_sample(tc.load_dataset(name), fraction=0.1, random_seed=2001)
        sample.to_series().reset_index().to_csv(
            Path(__file__).parent / f"{name}_sample.csv", index=False
        )


if __name__ == "__main__":
    main()

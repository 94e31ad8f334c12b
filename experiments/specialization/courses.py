"""What the heads of every point learn from, the same for both roads."""

from collections.abc import Mapping
from typing import Any

from sims.learning import Course

NOISY = "noisy"
"""The variant whose labels have the noise of the setting ``noisy_sd``."""


def courses(settings: Mapping[str, Any]) -> dict[str, Course]:
    """Name of a point, its stream and variant, to what its heads learn from.

    A variant is on the streams that ``only_on`` has for it, and else on all.
    """
    sds = {NOISY: settings["noisy_sd"]}
    return {
        f"{stream}, {variant}": Course.of({**settings, "noise_sd": sd}, stream, variant)
        for stream in settings["streams"]
        for variant in settings["variants"]
        for sd in [sds.get(variant, settings["noise_sd"])]
        if stream in settings["only_on"].get(variant, settings["streams"])
    }

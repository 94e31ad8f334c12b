"""Colours have contrast, and differ in grey and for the colour-blind."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from sims import figures
from sims.figures.marks import INKS
from sims.figures.theme import BAND


def linear(color):
    value = np.array(to_rgb(color))
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(color, other="#ffffff"):
    """Of WCAG 2: (lighter + 0.05)/(darker + 0.05) of relative luminances."""
    shades = sorted(linear(c) @ [0.2126, 0.7152, 0.0722] + 0.05 for c in (color, other))
    return shades[1] / shades[0]


def oklab(rgb):
    """Björn Ottosson's perceptual space, times 100: about 2 is a just noticeable difference."""
    lms = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return 100 * np.array(lab) @ np.cbrt(np.array(lms) @ np.clip(rgb, 0, 1))


# Machado, Oliveira & Fernandes (2009), severity 1, on linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


@pytest.mark.parametrize("background", ["white", BAND])
def test_colours_have_contrast(background):
    marks = (*figures.PALETTE, figures.GREY)
    assert min(contrast(mark, background) for mark in marks) >= 3
    assert min(contrast(ink, background) for ink in INKS.values()) >= 4.5


def least_distance(colors, blindness):
    seen = [oklab(np.array(BLINDNESS[blindness]) @ linear(color)) for color in colors]
    return min(np.linalg.norm(a - b) for a, b in combinations(seen, 2))


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_colours_differ_for_the_colour_blind(blindness):
    assert least_distance(figures.PALETTE[:5], blindness) > 7
    assert least_distance(figures.PALETTE, blindness) > 6


def test_colours_differ_in_grey():
    shades = [oklab(np.full(3, linear(c) @ [0.2126, 0.7152, 0.0722]))[0] for c in figures.PALETTE]
    assert min(abs(a - b) for a, b in combinations(shades[:5], 2)) > 4

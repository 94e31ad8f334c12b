"""Does the error of averaged heads fall as the heads become more diverse? In NumPy alone.

Through its frame U (d × d_k, orthonormal columns) a head sees keys x_i and a query x. It predicts
Σ_i w_i y_i from labels y_i = m(x_i) + ε_i, with w_i ∝ exp(s_i/b²) and s_i = ⟨Uᵀx, Uᵀx_i⟩ (softmax)
or −|Uᵀ(x − x_i)|²/2 (Gaussian). The average of H heads has their mean weights w̄_i. Given the
keys, its squared error is (Σ_i w̄_i m(x_i) − m(x))² + σ² Σ_i w̄_i², a mean over ε of variance σ².

Printed is how its mean changes from nearly aligned to Haar (uniform) heads. As drawn: each set at
its own best b, tuned on other draws. Equally good: both turned by a new uniform rotation in each
batch, at the b that is then best for Haar heads. With a gain: as drawn, each average multiplied,
about the mean of m, by the factor that is best for it on the pilot. ± is one standard error, ?
within two. Skill = 1 − error/Var m and n_eff = 1/Σ_i w_i² are of the Haar heads.
"""

import numpy as np

HEADS, WIDTH, FEATURES = 4, 4, 32
PILOT, BATCHES, REPLICATES = 16, 256, 2
SIZES = ((8, 64), (8, 512), (16, 64), (16, 512), (8, 64))  # d and n
PROBLEMS = [(*size, kernel) for size in SIZES for kernel in ("gaussian", "softmax")]
GRID = WIDTH**0.5 * 2.0 ** np.arange(-3.5, 2.51, 0.5)  # bandwidths that the pilot tries


def orthonormal(a):
    q, r = np.linalg.qr(a)
    return q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[..., None, :]  # uniform for normal a


def diversity(frames):
    """One minus the mean of |UᵀV|²/d_k over pairs of heads: 0 if all see the same."""
    total = (np.einsum("hdi,gdj->hgij", frames, frames) ** 2).sum() / WIDTH
    return 1 - (total - HEADS) / (HEADS * (HEADS - 1))


def draw_sets(rng, d):
    base = orthonormal(rng.normal(size=(d, WIDTH)))
    haar = orthonormal(rng.normal(size=(HEADS, d, WIDTH)))
    low, high = 0.0, 1.0
    for _ in range(30):  # bisection: the aligned set gets 5 % of the Haar set's diversity
        t = (low + high) / 2
        aligned = orthonormal((1 - t) ** 0.5 * base + t**0.5 * haar)
        low, high = (t, high) if diversity(aligned) < 0.05 * diversity(haar) else (low, t)
    return np.stack([aligned, haar])  # (2, H, d, d_k)


def draw_target(rng, d):
    """Random Fourier features of a smooth m, of all d directions or of d_k to 2 d_k of them."""
    m = rng.choice([d, round(WIDTH * rng.uniform(1, 2))])
    basis = orthonormal(rng.normal(size=(d, m)))
    scale = m**0.5 * np.exp(rng.uniform(np.log(0.4), np.log(3)))
    frequency = basis @ rng.normal(size=(m, FEATURES)) / scale
    phase = rng.uniform(0, 2 * np.pi, FEATURES)
    return lambda x: (2 / FEATURES) ** 0.5 * np.cos(x @ frequency + phase).sum(-1)


def simulate(rng, n, kernel, target, centre, noise, sets, bandwidths):
    """Moments of a batch: of the sets as drawn and both turned, at their bandwidths.

    They are error, n_eff/n, and of the average a, about the mean c of m: E (a − c)(m − c) and
    E (a − c)², from which the error of any gain follows.
    """
    d = sets.shape[2]
    sets = np.concatenate([sets, orthonormal(rng.normal(size=(d, d))) @ sets])
    queries = rng.normal(size=(64 if n == 64 else 16, d))
    found = np.zeros((4, *np.shape(bandwidths)))
    for keys in rng.normal(size=(REPLICATES, n, d)):
        values, truth = target(keys), target(queries)
        for s, frames in enumerate(sets):
            z = keys @ frames  # (H, n, d_k)
            score = (queries @ frames) @ z.swapaxes(1, 2)
            if kernel == "gaussian":
                score -= (z**2).sum(-1)[:, None] / 2  # |Uᵀx|² is common to all keys: it cancels
            for t, b in enumerate(bandwidths[s]):
                w = np.exp((score - score.max(-1, keepdims=True)) / b**2)
                w /= w.sum(-1, keepdims=True)
                mean = w.mean(0)
                average = mean @ values
                variance = noise * (mean**2).sum(-1)
                found[0, s, t] += ((average - truth) ** 2 + variance).mean()
                found[1, s, t] += (1 / (w**2).sum(-1)).mean() / n
                found[2, s, t] += ((average - centre) * (truth - centre)).mean()
                found[3, s, t] += ((average - centre) ** 2 + variance).mean()
    return found / REPLICATES


def compare(aligned, haar):
    """Relative change of the mean error from aligned to Haar heads, in words."""
    change = haar.mean() / aligned.mean() - 1
    mcse = (haar - (1 + change) * aligned).std() / aligned.mean() / BATCHES**0.5
    word = "?" if abs(change) < 2 * mcse else "falls" if change < 0 else "rises"
    return f"{change:+6.1%} ± {mcse:.1%} {word:5}"


print(" d   n kernel   | as drawn: skill, n_eff/n, change   | with a gain         | equally good")
for number, (d, n, kernel) in enumerate(PROBLEMS):
    rng = np.random.default_rng([2026, number])
    place = skill = np.zeros(4)
    while skill[[1, 3]].min() < 0.02 or place.min() == 0 or place.max() == len(GRID) - 1:
        target, sets = draw_target(rng, d), draw_sets(rng, d)
        values = target(rng.normal(size=(4096, d)))
        centre, variance = values.mean(), values.var()
        noise = variance * np.exp(rng.uniform(np.log(0.02), np.log(4)))
        problem = n, kernel, target, centre, noise
        tried = [simulate(rng, *problem, sets, [GRID] * 4) for _ in range(PILOT)]
        error, _, along, square = np.mean(tried, axis=0)
        place, skill = error.argmin(1), 1 - error.min(1) / variance
    before, least, after = (error[range(4), place + step] for step in (-1, 0, 1))
    shift = (before - after) / (before - 2 * least + after) / 2  # to the minimum of a parabola
    best = (GRID[place] * 2 ** (shift / 2))[[0, 1, 3, 3], None]
    gain = (along / square)[range(2), place[:2], None]
    batches = [simulate(rng, *problem, sets, best) for _ in range(BATCHES)]
    errors, keys, along, square = np.array(batches)[..., 0].transpose(1, 2, 0)
    # The error of gain g is E (m − c)² − 2 g E (a − c)(m − c) + g² E (a − c)².
    gained = errors[:2] + 2 * (1 - gain) * along[:2] - (1 - gain**2) * square[:2]
    columns = [f"{d:2} {n:3} {kernel:8}"]
    for aligned, haar in ((0, 1), (2, 3)):  # as drawn, equally good
        left = f"{1 - errors[haar].mean() / variance:5.2f}   {keys[haar].mean():.3f}"
        columns.append(f"{left}  {compare(errors[aligned], errors[haar])}")
    columns.insert(2, compare(*gained))
    print(" | ".join(columns))

/** How long a server may be silent, and how slow it may be, unless a caller says otherwise. */
import type { MinRate } from './pace.ts';
import type { Timeouts } from './wire.ts';

/** 1000 bytes a second, like dnf's `minrate`, over an interval in which networks and servers usually recover. */
export const MIN_RATE: MinRate = { bytes: 60_000, ms: 60_000 };

/** A body that stalls for 30 seconds is better requested again; apt and dnf wait as long. */
export const TIMEOUTS: Timeouts = {
  connectMs: 20_000,
  headersMs: 60_000,
  idleMs: 30_000,
  smallMs: 120_000,
  minRate: MIN_RATE,
};

/** Attempts that may end in a stalled body: each takes as long as the time limit. */
export const MAX_STALLS = 2;

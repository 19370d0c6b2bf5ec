/** How many nodes kops replaces at the same time (resolveSettings of its instance groups). Pure. */

export interface RollingLimits {
  /** A number of nodes, or a share of them such as `25%`. */
  readonly maxSurge?: number | string | undefined;
  readonly maxUnavailable?: number | string | undefined;
}

export interface RollingSizes {
  /** Nodes that are added before others are taken away. */
  readonly surge: number;
  /** Nodes that may be away. */
  readonly unavailable: number;
}

/** Shares of surge are rounded up, those of unavailable nodes down, to one at least. Control planes have no surge. */
export function rollingSizes(
  nodes: number,
  { maxSurge = 0, maxUnavailable }: RollingLimits,
  { isControlPlane = false }: { readonly isControlPlane?: boolean } = {},
): RollingSizes {
  const surge = isControlPlane ? 0 : sizeOf(maxSurge, (share) => Math.ceil(nodes * share));
  const unavailable = sizeOf(maxUnavailable ?? (surge === 0 ? 1 : 0), (share) =>
    Math.max(1, Math.floor(nodes * share)),
  );
  return { surge, unavailable };
}

function sizeOf(size: number | string, ofShare: (share: number) => number): number {
  if (typeof size === 'number') return size;
  const [, percent, count] = /^(?:(\d{1,9})%|(\d{1,9}))$/.exec(size) ?? [];
  return percent === undefined ? Number(count ?? 0) : ofShare(Number(percent) / 100);
}

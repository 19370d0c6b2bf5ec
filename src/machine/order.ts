/** The order in which machines change. Pure. */

export type Role = 'control-plane' | 'worker';

/** Control planes one after the other, then all workers together; those that have the version already need no turn. */
export function upgradeOrder<M extends { readonly role: Role; readonly version: string }>(
  machines: readonly M[],
  version: string,
): readonly (readonly M[])[] {
  const outdated = machines.filter((one) => one.version !== version);
  const workers = outdated.filter(({ role }) => role === 'worker');
  const turns = outdated.filter(({ role }) => role !== 'worker').map((one) => [one]);
  return workers.length === 0 ? turns : [...turns, workers];
}

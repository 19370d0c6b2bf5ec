/** Names of half-written files as processes that are gone, or out of sight, would have left them. */
import { randomBytes } from 'node:crypto';
import { ownOwner, type Owner } from '../../src/platform/files/owner.ts';

/** The text that identifies a process; this one by default. */
export function ownerOf(owner: Partial<Owner> = {}): string {
  const { place, pid, start } = { ...ownOwner(), ...owner };
  return `${place}-${pid}-${start}`;
}

export function partialNameOf(owner: Partial<Owner>): string {
  return `.curlew-partial-${ownerOf(owner)}-${randomBytes(4).toString('hex')}`;
}

/** Its process had this one's pid, and started at another time. */
export function deadPartialName(): string {
  return partialNameOf({ start: '1' });
}

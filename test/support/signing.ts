/** Keys, and signers of stores whose clock and memory a test holds in its hands. */
import { cp, mkdir } from 'node:fs/promises';
import type { Signer } from '../../src/ship/release/sign-release.ts';
import {
  readSigned,
  type ReleaseTrust,
  type SeenRelease,
  type SeenVersions,
} from '../../src/ship/release/signed-release.ts';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import type { Store } from '../../src/ship/store/store.ts';
import { makeKeyPair, publicPart, readPrivateKey } from '../../src/formats/signing/keys.ts';
import * as assert from './assert.ts';
import { madePackage, publishAs } from './releases.ts';
import { tree, type Tree } from './tree.ts';

export const DAY: number = 24 * 60 * 60 * 1000;

/** Remembers as a machine does. */
export function memory(): SeenVersions {
  const current = new Map<string, number>();
  const newest = new Map<string, SeenRelease>();
  return {
    highest: async (address) => current.get(address),
    newest: async (address) => newest.get(address),
    remember: async (address, { release, version, isCurrent }) => {
      if (isCurrent) current.set(address, Math.max(version, current.get(address) ?? 0));
      if (version > (newest.get(address)?.version ?? 0)) newest.set(address, { release, version });
    },
  };
}

export interface Hand {
  /** Signs at this time; thirty days long if nothing else is said. */
  readonly at: (now: Date, options?: { readonly lifetime?: number; readonly seen?: SeenVersions }) => Signer;
  /** What somebody asks who trusts this hand. */
  readonly trustedAt: (now: Date, seen?: SeenVersions) => ReleaseTrust;
}

/** Somebody with a key of their own. */
function hand(name: string): Hand {
  const key = readPrivateKey(makeKeyPair(undefined).privateKey, name, undefined);
  const keys = [publicPart(key, name)];
  const trustedAt = (now: Date, seen = memory()): ReleaseTrust => ({ keys, now, seen });
  return {
    at: (now, { lifetime = 30 * DAY, seen = memory() } = {}) => ({ key, lifetime, trust: trustedAt(now, seen) }),
    trustedAt,
  };
}

/** When the stores of {@link signedStore} are signed first. */
export const NOW: Date = new Date('2026-11-20T12:00:00Z');
export const our: Hand = hand('our.pub');
export const their: Hand = hand('their.pub');

export function later(days: number): Date {
  return new Date(NOW.getTime() + days * DAY);
}

/** A store with the signed releases v1, then v2 a day later; `copy` has the store as it was in between. */
export async function signedStore(signal: AbortSignal): Promise<{ readonly box: Tree; readonly store: Store }> {
  const box = await tree();
  await mkdir(box.at('store'));
  const store = createFolderStore(box.at('store'));
  await publishAs(store, 'v1', [await madePackage(box, 'a', '1.0', 'one')], signal, { signer: our.at(NOW) });
  await cp(box.at('store'), box.at('copy'), { recursive: true });
  await publishAs(store, 'v2', [await madePackage(box, 'b', '1.0', 'two')], signal, { signer: our.at(later(1)) });
  return { box, store };
}

/** The release that whoever trusts so takes for the current one. */
export async function current(store: Store, trust: ReleaseTrust, signal: AbortSignal): Promise<string> {
  return (await readSigned(store, { release: undefined, trust, signal })).release;
}

/** Fails with `SIGNATURE_INVALID`. */
export async function refuses(work: Promise<unknown>, message: RegExp): Promise<void> {
  await assert.rejectsWith(work, 'SIGNATURE_INVALID', message);
}

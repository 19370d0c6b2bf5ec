/** `curlew versions`: which versions of which add-ons a release has, and which one a word such as 1.2.x means. */
import { STORE_OPTIONS } from '../options.ts';
import { visible } from '../../core/diagnostic.ts';
import { CurlewError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { checkedRelease } from '../../store/release/release-name.ts';
import { resolveVersion, type ResolvedVersion } from '../../spec/version.ts';
import { offeredCatalogue } from '../../store/release/offered.ts';
import type { Command } from '../command.ts';
import { openStoreFor } from '../../app/ports/stores.ts';

interface AddonVersions {
  readonly name: string;
  /** The first is the latest. */
  readonly versions: readonly { readonly version: string; readonly arches: readonly string[] }[];
  /** For `name@version`: what it means. */
  readonly resolved?: ResolvedVersion;
}

interface Versions {
  readonly store: string;
  readonly release: string;
  readonly addons: readonly AddonVersions[];
}

export const versionsCommand: Command<Versions> = {
  name: 'versions',
  summary: 'Show the versions of add-ons that a release has',
  operands: '[name[@version]…]',
  options: {
    from: { type: 'string', value: 'STORE', help: 'the store to ask' },
    release: { type: 'string', value: 'R', help: 'which release (default: the current one)' },
    ...STORE_OPTIONS,
  },
  details:
    'Versions stand in order; the first is what "latest" means. External add-ons stand before those of the release. Behind an @ stands an exact version, "latest" or a range\n' +
    'such as 1.2.x, and the answer is the version that an installer spec would get.',
  examples: ['curlew versions --from /srv/dist', 'curlew versions rook@1.0.x --from s3://bucket/dist'],
  run: async (args, context) => {
    const { signal } = context;
    const from = args.text('from');
    if (from === undefined) throw new CurlewError('USAGE', 'curlew versions: name a store with --from');
    const given = args.text('release');
    const wanted = given === undefined ? undefined : checkedRelease(given, '--release');
    const store = await openStoreFor(from, args.options, context, { create: false });
    const { release, addons } = await offeredCatalogue(store, { release: wanted, signal });
    const all = addons.map(({ name, versions }): AddonVersions => {
      return { name, versions: versions.map((one) => ({ version: one.version, arches: Object.keys(one.packages) })) };
    });
    if (args.positionals.length === 0) return { store: store.address, release, addons: all };
    return { store: store.address, release, addons: args.positionals.map((text) => oneOf(all, text, release)) };
  },
  render: ({ addons }) =>
    addons
      .map(({ name, versions, resolved }) => {
        if (resolved !== undefined) return visible(`${name} ${resolved.version} (${resolved.because})`);
        return visible(`${name}: ${versions.map(({ version }) => version).join(' ')}`);
      })
      .join('\n'),
};

function oneOf(all: readonly AddonVersions[], text: string, release: string): AddonVersions {
  const at = text.indexOf('@');
  const name = at === -1 ? text : text.slice(0, at);
  const found = all.find((addon) => addon.name === name);
  if (found === undefined) {
    const near = nearest(
      name,
      all.map((addon) => addon.name),
    );
    throw new CurlewError('NOT_FOUND', `${release} has no add-on ${JSON.stringify(name.slice(0, 100))}`, {
      hint: near === undefined ? 'the same command without a name lists them' : `did you mean ${near}?`,
    });
  }
  if (at === -1) return found;
  // External packages that curlew cannot read are listed for others.
  const available = found.versions.flatMap(({ version, arches }) => (arches.length === 0 ? [] : [version]));
  return { ...found, resolved: resolveVersion(name, text.slice(at + 1), available) };
}

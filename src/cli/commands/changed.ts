/** `curlew changed`: which add-ons a build would make anew, for the matrix of a CI job. */
import { CurlewError } from '../../core/errors.ts';
import { printableJson } from '../../core/json.ts';
import { checkedRelease } from '../../store/release/release-name.ts';
import { readRelease } from '../../store/release/previous.ts';
import { openBuildPorts } from '../build-ports.ts';
import { BUILD_OPTIONS, countOf, planAddons } from '../building.ts';
import type { Command } from '../command.ts';
import { openStoreFor, STORE_OPTIONS } from '../stores.ts';
import { compareWithRelease, type Change } from '../recorded.ts';

const { arch, cache, 'image-format': form, ...rest } = BUILD_OPTIONS;
const { out: _out, jobs: _jobs, locked: _locked, 'update-lock': _update, ...network } = rest;

/** Add-ons looked at at once: it is waiting for answers, mostly. */
const AT_ONCE = 16;

interface Batch {
  /** From 1. */
  readonly batch: number;
  /** Words for `curlew build`. */
  readonly addons: string;
}

interface ChangedAddons {
  readonly store: string;
  /** The release that was compared with. */
  readonly since: string;
  readonly changed: readonly Change[];
  readonly unchanged: number;
  /** What the release has and the folders have not. */
  readonly gone: readonly string[];
  readonly matrix: { readonly include: readonly Batch[] };
}

export const changed: Command<ChangedAddons> = {
  name: 'changed',
  summary: 'Show which add-ons differ from a release, for CI',
  operands: '[addon…]',
  options: {
    from: { type: 'string', value: 'STORE', help: 'store that holds the release' },
    since: { type: 'string', value: 'R', help: 'release to compare with (default: the current one)' },
    batch: { type: 'string', value: 'N', help: 'print a matrix of jobs, N add-ons each, as one line of JSON' },
    arch,
    'image-format': form,
    cache,
    ...STORE_OPTIONS,
    ...network,
  },
  details:
    'Compares own files, what tags and addresses stand for now, and what container builds are made from, with what the\n' +
    'release recorded. Builds nothing, and fetches manifests and headers only.',
  examples: ['curlew changed --from /srv/dist', 'curlew changed --from /srv/dist --since v1.4.0 --batch 5'],
  run: async (args, context) => {
    const { signal } = context;
    const from = args.text('from');
    if (from === undefined)
      throw new CurlewError('USAGE', 'curlew changed: say with --from which store to compare with');
    const since = args.text('since');
    const wanted = since === undefined ? undefined : checkedRelease(since, '--since');
    const size = countOf(args, 'batch', Number.MAX_SAFE_INTEGER);
    const plan = await planAddons(args.positionals, args, context);
    const store = await openStoreFor(from, args, context, { create: false });
    const { release, packages } = await readRelease(store, { release: wanted, signal });
    await using ports = await openBuildPorts(plan.addons, args, context);
    const compared = await compareWithRelease(plan, packages, ports, { jobs: AT_ONCE, lock: undefined, signal });
    const stale = compared.filter(({ because }) => because !== undefined).map(({ change }) => change);
    const known = new Set(compared.map(({ file }) => file));
    const gone = args.positionals.length > 0 ? [] : [...packages.keys()].filter((file) => !known.has(file));
    return {
      store: store.address,
      since: release,
      changed: stale,
      unchanged: compared.length - stale.length,
      gone,
      matrix: { include: batches(stale, size) },
    };
  },
  render: ({ since, changed: all, unchanged, matrix }, args) => {
    if (args.text('batch') !== undefined) return printableJson(matrix);
    const lines = all.map(({ name, version, change, because }) => `${name} ${version}: ${change}: ${because}`);
    return [...lines, `${all.length} differ from ${since}, ${unchanged} do not`].join('\n');
  },
};

function batches(all: readonly Change[], size: number): readonly Batch[] {
  const words = all.map(({ name, version }) => `${name}/${version}`);
  const count = Math.ceil(words.length / size);
  return Array.from({ length: count }, (_, at) => {
    return { batch: at + 1, addons: words.slice(at * size, (at + 1) * size).join(' ') };
  });
}

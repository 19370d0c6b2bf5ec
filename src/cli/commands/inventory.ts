/** `curlew inventory`: what a place has, as a small file that deltas are made from. */
import { resolve } from 'node:path';
import { isSea } from 'node:sea';
import { joinBases, openBase, type BasePayload } from '../../bundle/delta/base.ts';
import { formatInventory, makeInventory, type Inventory } from '../../bundle/delta/inventory.ts';
import { counted } from '../../core/counted.ts';
import type { Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { INSTALL_DIRECTORY } from '../../core/layout.ts';
import { hashFile } from '../../platform/files/hash-file.ts';
import { writeText } from '../../platform/files/write-whole.ts';
import type { Command } from '../command.ts';
import { outputOf } from '../output.ts';
import { formatBytes } from '../render/units.ts';
import { toolVersion } from '../../app/version.ts';

interface Result {
  /** Undefined when the inventory itself is the result. */
  readonly file: string | undefined;
  /** Identity of the inventory. */
  readonly digest: Digest;
  readonly packages: readonly string[];
  readonly payloads: number;
  /** Unpacked bytes of all payloads. */
  readonly bytes: number;
  /** Without `--output`. */
  readonly inventory?: Inventory;
}

/** Smaller files travel with a delta for little more than their line here. */
const SMALL = 4096;

export const inventory: Command<Result> = {
  name: 'inventory',
  summary: 'List what a node or a folder of bundles has, for a delta',
  operands: '[BUNDLE | FOLDER]…',
  options: {
    output: { type: 'string', short: 'o', value: 'FILE', help: 'the inventory to write (default: standard output)' },
    compact: { type: 'boolean', help: 'leave out files below 4 KiB: a smaller inventory, a slightly larger delta' },
    'with-tool': {
      type: 'boolean',
      help: 'of a node: count the curlew that runs, too; the delta is smaller, for install there only, not for apply',
    },
    force: { type: 'boolean', help: 'replace the file if it is there' },
  },
  details: `A folder is the install folder of a node, an unpacked bundle, or any folder with bundles or packages in it; without one it is ${INSTALL_DIRECTORY}. Of bundles and packages only the tables of contents are read; files of folders are hashed.

The inventory holds digests and sizes, and the names and versions of packages; nothing else of the place. curlew bundle --since takes it.`,
  examples: ['curlew inventory -o inventory.json', 'curlew inventory bundles/ -o inventory.json'],
  run: async (args, context) => {
    const { cwd, report, signal } = context;
    const places = args.positionals.length === 0 ? [INSTALL_DIRECTORY] : args.positionals;
    const bases = [];
    for (const place of places) bases.push(await openBase(resolve(cwd, place), { report, signal }));
    const base = joinBases(bases);
    const withTool = args.flag('with-tool');
    if (withTool && !(base.isUnpacked && isSea())) {
      throw new CurlewError(
        'USAGE',
        'curlew inventory: --with-tool is for the curlew of a bundle, over the folder of a node',
      );
    }
    const least = args.flag('compact') ? SMALL : 0;
    const payloads: BasePayload[] = [];
    for await (const { digest, size } of base.payloads({ signal })) if (size >= least) payloads.push({ digest, size });
    if (withTool) payloads.push(await hashFile(process.execPath, { signal }));
    const made = makeInventory({ payloads, packages: base.packages, tool: toolVersion() });
    const { digest, packages } = made;
    const bytes = made.payloads.reduce((sum, [, size]) => sum + size, 0);
    const counts = { digest, packages, payloads: made.payloads.length, bytes };
    const output = outputOf(args);
    if (output === undefined) return { file: undefined, ...counts, inventory: made };
    const file = resolve(cwd, output);
    const text = formatInventory(made);
    await writeText(file, text, { force: args.flag('force') });
    return { file, ...counts };
  },
  render: ({ file, digest, packages, payloads, bytes, inventory: made }) =>
    made === undefined
      ? `${file}: ${counted(payloads, 'file')} of ${formatBytes(bytes)}, of ${counted(packages.length, 'package')}\ninventory ${digest}`
      : formatInventory(made).trimEnd(),
};

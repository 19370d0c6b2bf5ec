/** `curlew inventory`: what a place has, as a small file that deltas are made from. */
import { inventory } from '../../app/inventory.ts';
import { formatInventory } from '../../bundle/delta/inventory.ts';
import { counted } from '../../core/counted.ts';
import { INSTALL_DIRECTORY } from '../../core/layout.ts';
import { command } from '../command.ts';
import { outputOf } from '../output.ts';
import { formatBytes } from '../render/units.ts';

export const inventoryCommand = command({
  name: 'inventory',
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
  run: async ({ operands, options: { output: file, ...options } }, context) => {
    const output = outputOf(file);
    return inventory({ places: operands, output, ...options }, context);
  },
  render: ({ file, digest, packages, payloads, bytes, inventory: made }) =>
    made === undefined
      ? `${file}: ${counted(payloads, 'file')} of ${formatBytes(bytes)}, of ${counted(packages.length, 'package')}\ninventory ${digest}`
      : formatInventory(made).trimEnd(),
});

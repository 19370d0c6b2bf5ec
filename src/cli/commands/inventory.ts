/** `curlew inventory`: writes the inventory of a node or of bundles, from which deltas are created. */
import { formatInventory } from '../../bundle/delta/inventory.ts';
import { counted } from '../../core/counted.ts';
import { INSTALL_DIRECTORY } from '../../core/layout.ts';
import { command, useCase } from '../command.ts';
import { outputOf } from '../output.ts';
import { formatBytes } from '../render/units.ts';

const inventory = useCase(async () => (await import('../../app/inventory.ts')).inventory);

export const inventoryCommand = command({
  name: 'inventory',
  operands: '[BUNDLE | FOLDER]…',
  options: {
    output: { type: 'string', short: 'o', value: 'FILE', help: 'the inventory to write (default: standard output)' },
    compact: { type: 'boolean', help: 'omit files below 4 KiB: smaller inventory, slightly larger delta' },
    'with-tool': {
      type: 'boolean',
      help: 'on a node: include the running curlew; the delta is smaller, and works with install but not with apply',
    },
    force: { type: 'boolean', help: 'replace an existing file' },
  },
  details: `A folder is the install folder of a node, an unpacked bundle, or any folder with bundles or packages (default: ${INSTALL_DIRECTORY}). Reads only the tables of contents of bundles and packages, but hashes the files of folders.

  The inventory contains only digests and sizes, and the names and versions of packages. It is the input of curlew bundle --since.`,
  examples: ['curlew inventory -o inventory.json', 'curlew inventory bundles/ -o inventory.json'],
  run: async ({ operands, options: { output: file, ...options } }, context) => {
    const output = outputOf(file);
    return inventory({ places: operands, output, ...options }, context);
  },
  render: ({ file, digest, packages, payloads, bytes, inventory: document }) =>
    document === undefined
      ? `${file}: ${counted(payloads, 'file')}, ${formatBytes(bytes)}, in ${counted(packages.length, 'package')}\ninventory ${digest}`
      : formatInventory(document).trimEnd(),
});

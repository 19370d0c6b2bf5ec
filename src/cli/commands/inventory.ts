/** `curlew inventory`: writes the inventory of a node or of bundles, from which deltas are created. */
import { INVENTORY } from '../../requests/bundle.ts';
import { formatInventory } from '../../ship/bundle/delta/inventory.ts';
import { counted } from '../../core/counted.ts';
import { NOTHING_WRITTEN } from '../../core/errors.ts';
import { INSTALL_DIRECTORY } from '../../core/layout.ts';
import { commandFor } from '../command.ts';
import { commandOutput } from '../output.ts';
import { formatBytes } from '../render/units.ts';

export const command = commandFor(INVENTORY, {
  details: `A folder is the install folder of a node, an unpacked bundle, or any folder with bundles or packages (default: ${INSTALL_DIRECTORY}). Reads only the tables of contents of bundles and packages, but hashes the files of folders.

  The inventory contains only digests and sizes, and the names and versions of packages. It is the input of curlew bundle --since.`,
  examples: ['curlew inventory -o inventory.json', 'curlew inventory bundles/ -o inventory.json'],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) =>
    (await import('../../app/inventory.ts')).inventory({ ...request, output: commandOutput(request.output) }, context),
  render: ({ file, digest, packages, payloads, bytes, inventory: document }) =>
    document === undefined
      ? `${file}: ${counted(payloads, 'file')}, ${formatBytes(bytes)}, in ${counted(packages.length, 'package')}\ninventory ${digest}`
      : formatInventory(document).trimEnd(),
});

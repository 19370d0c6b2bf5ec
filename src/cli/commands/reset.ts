/** `curlew reset`: everything off this node that runs have put there. */
import { stat } from 'node:fs/promises';
import type { Command } from '../command.ts';
import { confirm } from '../ask-line.ts';
import { RESET_OPTIONS, runReset, type ResetResult } from '../kept-run.ts';
import { placesOf } from '../node-target.ts';

const DETAILS = `The uninstall hooks of all add-ons run in the reverse of their order, with the settings they were installed with; then what runs put into the install folder is removed. An add-on without an uninstall hook leaves what it did to the machine and to the cluster. When a hook fails, the same command goes on with it.`;

export const reset: Command<ResetResult | { readonly directory: string; readonly removed: readonly string[] }> = {
  name: 'reset',
  summary: 'Take off this node what was installed',
  operands: '',
  details: DETAILS,
  examples: ['curlew reset', 'curlew reset --yes --json'],
  options: RESET_OPTIONS,
  run: async (args, context) => {
    const { directory } = placesOf(args, context);
    if ((await stat(directory).catch(() => undefined)) === undefined) return { directory, removed: [] };
    if (!args.flag('yes')) await confirm(`Take everything off this node that lies in ${directory}?`, context);
    return runReset(args, context);
  },
  render: (result) => {
    const addons = 'addons' in result ? result.addons : [];
    const rows = addons.map(({ name, version }) => `${name}  ${version}  removed`);
    const { directory, removed } = result;
    const files =
      removed.length === 0
        ? `nothing was installed in ${directory}`
        : `removed from ${directory}: ${removed.join(', ')}`;
    return [...rows, files].join('\n');
  },
};

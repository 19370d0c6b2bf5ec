/** `curlew cluster …`: a cluster and its machines, from a file. */
import { CLUSTER_DIFF } from '../../requests/cluster.ts';
import { counted } from '../../core/counted.ts';
import { visible } from '../../core/diagnostic.ts';
import { exactJson } from '../../core/json.ts';
import { commandFor } from '../command.ts';

/** Exit status of clusters that differ, as of diff tools. */
const DIFFERS = 2;

export const diff = commandFor(CLUSTER_DIFF, {
  details:
    'Compares two clusters by their files, and shows each field that differs with both values. What makes each cluster itself does not count: its name, its access, and the names and addresses of its machines. Contacts no cluster. Exits with status 2 if they differ.',
  examples: ['curlew cluster diff paris.yaml berlin.yaml'],
  run: async ({ request }, context) => (await import('../../app/cluster-diff.ts')).diffClusters(request, context),
  render: ({ a, b, differences }) => {
    const shown = (value: unknown): string => (value === undefined ? 'nothing' : exactJson(value));
    const lines = differences.map(({ path, ...values }) => `${path}: ${shown(values.a)} -> ${shown(values.b)}`);
    return [...lines, `${a} and ${b}: ${counted(differences.length, 'difference')}`].map(visible).join('\n');
  },
  exitCode: ({ differences }) => (differences.length > 0 ? DIFFERS : 0),
});

/** Requests about clusters that are described in files. */
import { flag, numberOf, one, path, paths, places, text, texts } from '../core/field.ts';
import { request } from '../core/request.ts';
import { ALLOW_GAP, DRY_RUN } from './channel.ts';
import { ADDRESS, CONFIG } from './connection.ts';

export const CLUSTER_DIFF = request('cluster diff', {
  files: paths('A B', 'two files with one cluster each', {
    operand: true,
    required: 'specify the files of two clusters',
  }),
});

const FILES = {
  files: paths('FILES', 'file or folder with one Cluster and its machines', {
    operand: true,
    required: 'specify the file of a cluster',
  }),
  // Its providers.
  ...CONFIG,
};
const BUNDLE = path('FILE', 'the bundle to send to hosts');
export const HOST_BUNDLE = { bundle: { ...BUNDLE, required: 'add --bundle FILE' } };

const removals = one(numberOf(1, 100_000, 'not a number from 1 to 100000'));
const CHOICES = {
  ignore: texts('TITLE', 'ignore a host preflight with this title on every machine; can be repeated'),
  channel: places('LOCATION', 'a channel whose add-ons move if the new Kubernetes version needs it; can be repeated'),
  allowGap: ALLOW_GAP,
  approveRemovals: removals('N', 'allow N machines to be removed at once (default: 10 %, at least 1)'),
  // Channels are read with these.
  ...ADDRESS,
};

export const CLUSTER_PLAN = request('cluster plan', {
  ...FILES,
  bundle: BUNDLE,
  ...CHOICES,
  out: path('FILE', 'save the plan, for curlew cluster apply --plan'),
  force: flag('replace the file of --out'),
});

export const CLUSTER_APPLY = request(
  'cluster apply',
  { ...FILES, ...HOST_BUNDLE, plan: path('FILE', 'apply a saved plan; fails if it is outdated'), ...CHOICES },
  { yes: flag('apply the changes; without this, show them', { short: 'y' }), dryRun: DRY_RUN },
);

export const CLUSTER_STATUS = request('cluster status', FILES);

export const CLUSTER_ADOPT = request('cluster adopt', {
  kubeconfig: path('FILE', 'kubeconfig of the cluster', { required: 'add --kubeconfig FILE' }),
  name: text('NAME', 'name of the cluster in the file (default: its name in the kubeadm configuration)'),
  out: path('FILE', 'write the output to this file, which must not exist (default: print it)', { short: 'o' }),
});

export const CLUSTER_DELETE = request(
  'cluster delete',
  {
    ...FILES,
    confirm: text('NAME', 'the name of the cluster; without this, show what would be reset'),
    skipUnreachable: flag('skip machines that cannot be reached'),
  },
  { dryRun: flag('only show what would be reset, as without --confirm') },
);

export const CLUSTER_NODES = request('cluster nodes', {});

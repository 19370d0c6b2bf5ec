/** Requests about the identity of clusters at a hub: who may come in, and how a site does. */
import { duration, flag, outputFile, path, paths, text } from '../core/field.ts';
import { request } from '../core/request.ts';
import { CLUSTER, DRY_RUN } from './channel.ts';

const NAME = {
  cluster: text('NAME', 'name of the cluster', { operand: true, required: 'specify the name of a cluster' }),
};
const TOKEN = {
  out: outputFile('FILE', 'the new file of the token, with mode 0600 (default: NAME.token)', { short: 'o' }),
  expires: duration('TIME', 'how long the token can be used (default: 1h)'),
  server: text('URL', 'address of the hub from the site (default: that of the kubeconfig)'),
};

export const HUB_TOKEN = request('hub token', {
  ...NAME,
  ...TOKEN,
  ...CLUSTER,
});

export const FLEET_ACCEPT = request(
  'fleet accept',
  {
    ...NAME,
    fingerprint: text(
      'SHA256:…',
      'only the request with this key, as curlew agent register prints it; others are denied',
    ),
    ...CLUSTER,
  },
  {
    yes: flag('accept it', { short: 'y' }),
    dryRun: DRY_RUN,
    rejoin: flag('instead, make a one-use token for a cluster whose certificate has expired'),
    ...TOKEN,
  },
);
/** A token for a cluster that was accepted before. */
export const REJOIN = { name: 'fleet accept', fields: HUB_TOKEN.fields };

export const FLEET_DETACH = request(
  'fleet detach',
  { ...NAME, ...CLUSTER },
  { yes: flag('take them', { short: 'y' }), dryRun: DRY_RUN },
);

const ROOT = {
  root: path('DIR', 'put the folder of the agent below DIR, for several agents on one machine (default: /)'),
};

export const AGENT_REGISTER = request('agent register', {
  tokenFile: path('FILE', 'the file that curlew hub token wrote; omit it to change the keys of a registered site'),
  key: paths('FILE', 'accept only content with a statement of this public key; can be repeated'),
  allowUnsigned: flag('accept content without a signature: anyone who can write to the hub can run programs here'),
  ...ROOT,
});

export const AGENT_UNREGISTER = request('agent unregister', ROOT, {
  yes: flag('delete the certificate, its key, and the trusted keys', { short: 'y' }),
  dryRun: DRY_RUN,
});

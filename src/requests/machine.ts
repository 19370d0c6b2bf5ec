/** Requests about one machine of a cluster that is described in a file. */
import { choice, flag, numberOf, one, path, text, texts } from '../core/field.ts';
import { request, type RequestOf } from '../core/request.ts';
import { HOST_BUNDLE } from './cluster.ts';
import { CONFIG } from './connection.ts';
import { DRY_RUN } from './channel.ts';
import { IGNORE, PAST } from './node.ts';

const MACHINE = {
  file: path('FILE', 'the file with the Cluster and its machines', {
    operand: true,
    required: 'specify the file of a cluster',
  }),
  name: text('NAME', 'name of the machine', { operand: true, required: 'specify one machine' }),
  ...CONFIG,
} as const;
const yes = flag('do it; without this, show what would be done', { short: 'y' });
const SHOW = { dryRun: DRY_RUN };

export const MACHINE_ADD = request(
  'machine add',
  {
    ...MACHINE,
    address: text('HOST', 'name or address of the host', {
      required: 'add --address HOST',
      hint: 'a machine of a provider has none: copy the entry of another one in the file, and curlew cluster apply creates it',
    }),
    hostKey: text('KEY', 'its host key: SHA256:…, or type and key', {
      required: 'add --host-key',
      hint: 'ssh-keyscan -t ed25519 HOST | ssh-keygen -lf - prints it: compare it with the console of the host',
    }),
    role: choice(['worker', 'control-plane'], 'what it becomes (default: worker)'),
    user: text('USER', 'user of its SSH server'),
    port: one(numberOf(1, 65_535, 'not a port'))('PORT', 'port of its SSH server'),
    via: text('HOST', 'the jump host to connect through'),
    label: texts('KEY=VALUE', 'a label of its node; can be repeated'),
    ...HOST_BUNDLE,
    ...IGNORE,
    yes,
  },
  SHOW,
);

export const MACHINE_DRAIN = request('machine drain', { ...MACHINE, ...PAST, yes }, SHOW);

export const MACHINE_UPGRADE = request('machine upgrade', { ...MACHINE, ...HOST_BUNDLE, ...IGNORE, yes }, SHOW);

export type MachineRequest = RequestOf<typeof MACHINE_UPGRADE.fields>;

export const MACHINE_REPAIR = request(
  'machine repair',
  {
    ...MACHINE,
    ...HOST_BUNDLE,
    maxUnhealthy: text('N|P%', 'repair only if no more machines than this are unhealthy (default: 40%, at least 1)'),
    ...IGNORE,
    yes,
  },
  SHOW,
);

export const MACHINE_REMOVE = request(
  'machine remove',
  { ...MACHINE, bundle: path('FILE', 'the bundle for the reset, if the host has none'), yes },
  SHOW,
);

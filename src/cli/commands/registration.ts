/** `curlew fleet accept|detach` at the hub, and `curlew agent register|unregister` on a site. */
import type { Acceptance } from '../../app/fleet-accept.ts';
import type { MadeToken } from '../../app/hub-token.ts';
import { AGENT_REGISTER, AGENT_UNREGISTER, FLEET_ACCEPT, FLEET_DETACH } from '../../requests/registration.ts';
import { firstOf } from '../../core/counted.ts';
import { visible } from '../../core/diagnostic.ts';
import { CurlewError } from '../../core/errors.ts';
import { commandFor, UNSETTLED } from '../command.ts';
import { quoted } from '../suggested-commands.ts';
import { tokenText } from './hub.ts';

export const accept = commandFor(FLEET_ACCEPT, {
  details:
    'Shows the request that a cluster has made by curlew agent register, and with --yes gives its agent its rights and approves it: to read what it is to have, and to say what it has, in the namespace of the cluster. Compare the fingerprint with what the site shows. Creates the namespace and the Cluster if need be. A request that is for another name or right than its token is never accepted.\n\nWith --rejoin, makes a token for a cluster whose certificate has expired: the request made with it replaces the former agent when it is accepted.',
  examples: [
    'curlew fleet accept paris --kubeconfig hub.conf',
    'curlew fleet accept paris --yes',
    'curlew fleet accept paris --rejoin -o paris.token',
  ],
  changesBy: '--yes',
  run: async ({ request, options }, context): Promise<Acceptance | MadeToken> => {
    const { yes, dryRun, rejoin, out, expires, server } = options;
    const { fingerprint, ...others } = request;
    if (rejoin && (yes || dryRun || fingerprint !== undefined)) {
      throw new CurlewError('USAGE', 'curlew fleet accept: --rejoin makes a token, and accepts nothing', {
        hint: 'omit --yes, --dry-run and --fingerprint; run the command without --rejoin when the site has registered',
      });
    }
    if (rejoin)
      return (await import('../../app/hub-token.ts')).makeRejoinToken({ ...others, out, expires, server }, context);
    if ((out ?? expires ?? server) !== undefined)
      throw new CurlewError('USAGE', 'curlew fleet accept: --out, --expires and --server require --rejoin');
    const { acceptCluster, planAcceptance } = await import('../../app/fleet-accept.ts');
    return yes ? acceptCluster(request, context) : planAcceptance(request, context);
  },
  render: (result, { request }) => ('file' in result ? tokenText(result) : acceptanceText(result, request)),
  exitCode: (result) => ('file' in result || result.accepted ? 0 : UNSETTLED),
});

/** More names are only counted. */
const MAX_NAMES = 5;

function acceptanceText(
  { cluster, request, createdAt, fingerprint, replaces, denied, accepted }: Acceptance,
  { kubeconfig, context }: { readonly kubeconfig?: string | undefined; readonly context?: string | undefined },
): readonly string[] {
  const hub = Object.entries({ kubeconfig, context }).flatMap(([option, value]) =>
    value === undefined ? [] : [`--${option} ${quoted(value)}`],
  );
  const command = ['curlew fleet accept', cluster, '--fingerprint', fingerprint, ...hub, '--yes'].join(' ');
  const sites = denied.length === 1 ? 'another site' : 'other sites';
  return [
    accepted ? `accepted ${cluster}: ${request}` : `${cluster} asks to be accepted: ${request}, made at ${createdAt}`,
    `  key ${fingerprint}`,
    ...(replaces ? [`  ${accepted ? 'replaced' : 'replaces'} the agent that was accepted before`] : []),
    ...(denied.length === 0
      ? []
      : [`  ${accepted ? 'denied' : 'denies'} ${firstOf(denied, MAX_NAMES)}, made by ${sites}`]),
    ...(accepted ? [] : ['compare the key with what the site shows, then run', `  ${command}`]),
  ];
}

export const detach = commandFor(FLEET_DETACH, {
  details:
    'Shows the agent of a cluster, and with --yes takes all its rights, deletes its tokens and denies its requests: its certificate is of a user without rights from then on, also if the name is registered again. The Cluster and its add-ons stay; the site runs curlew agent unregister.',
  examples: ['curlew fleet detach paris', 'curlew fleet detach paris --yes'],
  changesBy: '--yes',
  run: async ({ request, options }, context) => {
    const { detachCluster, planDetachment } = await import('../../app/fleet-detach.ts');
    return options.yes ? detachCluster(request, context) : planDetachment(request, context);
  },
  render: ({ cluster, user, tokens, requests, detached }) => [
    detached ? `detached ${cluster}` : `${cluster} would lose`,
    `  agent: ${user ?? 'none'}`,
    ...(tokens.length === 0 ? [] : [`  tokens: ${firstOf(tokens, MAX_NAMES)}`]),
    ...(requests.length === 0 ? [] : [`  requests: ${firstOf(requests, MAX_NAMES)}`]),
    ...(detached ? [] : ['add --yes to do this']),
  ],
  exitCode: ({ detached }) => (detached ? 0 : UNSETTLED),
});

export const register = commandFor(AGENT_REGISTER, {
  details:
    'Makes a key, which does not leave this machine, asks the hub of the token for a certificate, and waits until someone accepts it there. Writes the folder of the agent, /var/lib/curlew/agent. Interrupted, the same command continues. --key says whose packages, manifests and charts may run here. When the site is registered, the command without --token-file changes only that, for agents that are started later.',
  examples: [
    'curlew agent register --token-file paris.token --key curlew.pub',
    'curlew agent register --key old.pub --key new.pub',
  ],
  run: async ({ request }, context) => (await import('../../app/agent-register.ts')).registerAgent(request, context),
  render: ({ cluster, server, folder, expires }) =>
    visible(`registered ${cluster} at ${server} in ${folder}; the certificate is renewed before ${expires}`),
});

export const unregister = commandFor(AGENT_UNREGISTER, {
  details:
    'Shows, and with --yes deletes, what curlew agent register has written: the certificate, its key, and the trusted keys. Add-ons stay. At the hub, curlew fleet detach takes the rights of the agent.',
  examples: ['curlew agent unregister', 'curlew agent unregister --yes'],
  changesBy: '--yes',
  run: async ({ request, options }, context) => {
    const { planUnregistration, unregisterAgent } = await import('../../app/agent-unregister.ts');
    return options.yes ? unregisterAgent(request, context) : planUnregistration(request, context);
  },
  render: ({ cluster, folder, done }) =>
    visible(
      done
        ? `${folder} has forgotten its hub; run curlew fleet detach ${cluster} there`
        : `${folder} would forget the hub of ${cluster}; add --yes to do this`,
    ),
  exitCode: ({ done }) => (done ? 0 : UNSETTLED),
});

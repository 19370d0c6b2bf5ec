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
    'Shows the request that curlew agent register made for a cluster. Compare the fingerprint with the one that the site shows. With --yes, gives the agent its rights and approves the request. The agent can then read what its cluster must have, and report what it has, in the namespace of the cluster. Creates the namespace and the Cluster if they do not exist. Never accepts a request for a name or right that its token does not allow.\n\nWith --rejoin, creates a token for a cluster whose certificate has expired. When you accept the request made with it, the new agent replaces the former one.',
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
    'Shows the agent of a cluster. With --yes, revokes all its rights and those of its add-ons, deletes its tokens, and denies its requests. Its certificate then belongs to a user without rights, even if you register the name again. The Cluster and its add-ons stay. Run curlew agent unregister on the site.',
  examples: ['curlew fleet detach paris', 'curlew fleet detach paris --yes'],
  changesBy: '--yes',
  run: async ({ request, options }, context) => {
    const { detachCluster, planDetachment } = await import('../../app/fleet-detach.ts');
    return options.yes ? detachCluster(request, context) : planDetachment(request, context);
  },
  render: ({ cluster, user, tokens, requests, bindings, detached }) => [
    detached ? `detached ${cluster}` : `${cluster} would lose`,
    `  agent: ${user ?? 'none'}`,
    ...(tokens.length === 0 ? [] : [`  tokens: ${firstOf(tokens, MAX_NAMES)}`]),
    ...(requests.length === 0 ? [] : [`  requests: ${firstOf(requests, MAX_NAMES)}`]),
    ...(bindings.length === 0 ? [] : [`  RoleBindings of add-ons: ${firstOf(bindings, MAX_NAMES)}`]),
    ...(detached ? [] : ['add --yes to do this']),
  ],
  exitCode: ({ detached }) => (detached ? 0 : UNSETTLED),
});

export const register = commandFor(AGENT_REGISTER, {
  details:
    'Creates a key that never leaves this machine, requests a certificate from the hub of the token, and waits until someone accepts the request there. Writes the folder of the agent, /var/lib/curlew/agent. If it is interrupted, run the same command again to continue. --key names whose packages, manifests and charts may run here. On a registered site, the command without --token-file changes only these keys, for agents that you start later.',
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
    'Shows what curlew agent register wrote: the certificate, its key, and the trusted keys. With --yes, deletes them. Add-ons stay. On the hub, curlew fleet detach revokes the rights of the agent.',
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

/** Kubeconfigs of a hub that contain all they need: that of an agent, and that of a token for a new one. Pure. */
import * as v from 'valibot';
import { CurlewError } from '../../core/errors.ts';
import { exactValue } from '../../core/json.ts';
import { fits, readJson, type Bad, type Read } from '../../core/schema.ts';
import { secret, type Secret } from '../../core/secret.ts';
import { clusterName } from '../upstream/kinds.ts';

const text = v.exactOptional(v.string());
const address = v.object({
  server: v.pipe(v.string(), v.regex(/^https:\/\/[^\s/@?#]+(?:\/[^\s?#]*)?$/, 'not an https address')),
  /** Base64 of PEM; without it, the authorities that the machine trusts. */
  'certificate-authority-data': text,
  'tls-server-name': text,
});
const user = v.object({ 'client-certificate-data': text, 'client-key-data': text, token: text });
/** Which cluster a token is for, and the uid of the hub's namespace kube-system. */
const binding = v.object({ cluster: clusterName, hub: v.pipe(v.string(), v.uuid()) });

const EXTENSION = 'fleet.curlew.dev';
const config = v.object({
  clusters: v.tuple([v.object({ cluster: address })]),
  users: v.tuple([v.object({ user })]),
  extensions: v.exactOptional(v.tuple([v.object({ name: v.literal(EXTENSION), extension: binding })])),
});

/** Where a hub is, and how its certificate is checked; the names are those of kubeconfigs. */
export type HubAddress = Read<typeof address>;
export interface HubKubeconfig {
  readonly hub: HubAddress;
  readonly user: Read<typeof user>;
  readonly binding?: Read<typeof binding> | undefined;
}

/** JSON, which is YAML. */
export function formatKubeconfig({
  hub,
  user: own,
  binding: bound,
}: Omit<HubKubeconfig, 'user'> & { readonly user: Readonly<Record<string, string | undefined>> }): Secret {
  const parts = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'hub', cluster: hub }],
    users: [{ name: 'agent', user: own }],
    contexts: [{ name: 'hub', context: { cluster: 'hub', user: 'agent' } }],
    'current-context': 'hub',
    ...(bound && { extensions: [{ name: EXTENSION, extension: bound }] }),
  };
  return secret(`${JSON.stringify(parts, undefined, 2)}\n`);
}

/** `bad` makes the error of what {@link formatKubeconfig} does not write. */
export function agentKubeconfig(json: string, bad: Bad): HubKubeconfig {
  const { clusters, users, extensions } = readJson(config, json, { bad });
  return { hub: clusters[0].cluster, user: users[0].user, binding: extensions?.[0].extension };
}

const insecure = v.object({
  clusters: v.tuple([v.object({ cluster: v.object({ 'insecure-skip-tls-verify': v.literal(true) }) })]),
});

/** Where the hub of an embedded kubeconfig is. `CLUSTER_FAILED` if its certificate is not checked, or it is no https address. */
export function hubAddress(json: string): HubAddress {
  const bad: Bad = (what) =>
    new CurlewError(
      'CLUSTER_FAILED',
      `cannot make a token: the kubeconfig of the hub does not say who it is: ${what}`,
      {
        hint: 'use a kubeconfig with an https address and certificate-authority-data',
      },
    );
  if (fits(insecure, exactValue(json))) throw bad('insecure-skip-tls-verify is set');
  const { server, 'certificate-authority-data': ca, 'tls-server-name': name } = agentKubeconfig(json, bad).hub;
  return {
    server,
    ...(ca !== undefined && { 'certificate-authority-data': ca }),
    ...(name !== undefined && { 'tls-server-name': name }),
  };
}

/** The content of the file of a token. `FILE_UNUSABLE` for any other. */
export function readToken(
  json: string,
  path: string,
): Pick<HubKubeconfig, 'hub'> & { readonly binding: Read<typeof binding> } {
  const bad: Bad = (what) =>
    new CurlewError('FILE_UNUSABLE', `cannot read the token in ${path}: ${what}`, {
      hint: 'use the file that curlew hub token has written',
    });
  const { binding: bound, ...others } = agentKubeconfig(json, bad);
  if (bound === undefined || others.user.token === undefined) throw bad('it has no token');
  return { hub: others.hub, binding: bound };
}

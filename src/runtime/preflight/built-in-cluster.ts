/** Built-in checks of connections between the machines of a cluster: load balancer, other nodes, API, certificates. Pure. */
import type { JsonObject } from '../../formats/yaml/yaml.ts';
import { settingText, versionIn, type Situation } from './situation.ts';
import type { OutcomeRule } from './spec.ts';

/** Outcome of a built-in check. */
export type CheckRow = readonly [verdict: OutcomeRule['verdict'], when: string, message: string];

/** A built-in check: a collector and its analyzer. */
export interface BuiltIn {
  readonly kind: string;
  readonly name?: string;
  readonly settings?: JsonObject;
  readonly excluded?: boolean;
  readonly checkName?: string;
  readonly outcomes: readonly CheckRow[];
}

function reachable(what: string, verdict: 'warn' | 'fail'): readonly CheckRow[] {
  return [
    [verdict, 'connection-refused', `A connection to ${what} was refused`],
    [verdict, 'connection-timeout', `${what} does not respond: check the firewalls between`],
    [verdict, 'error', `A connection to ${what} failed`],
  ];
}

function healthy(url: string, verdict: 'warn' | 'fail'): readonly CheckRow[] {
  return [
    [verdict, 'error', `No response from ${url}`],
    ['pass', 'statusCode == 200', `${url} responds`],
    [verdict, '', `${url} responds with an unexpected status`],
  ];
}

const AHEAD = 'The clock of this machine differs from that of';

export function clusterChecks(situation: Situation): readonly BuiltIn[] {
  const { isPrimary, isJoin, isUpgrade } = situation;
  const hasKubernetes = versionIn(situation, 'kubernetes') !== '';
  const balancer = settingText(situation, 'kubernetes', 'loadBalancerAddress');
  const master = settingText(situation, 'kubernetes', 'masterAddress');
  const internal =
    versionIn(situation, 'ekco') !== '' && settingText(situation, 'ekco', 'enableInternalLoadBalancer') !== '';
  const isFirst = hasKubernetes && balancer !== '' && isPrimary && !isJoin;
  const address = balancer.replace(/\/$/, '');
  const health = (name: string, url: string, excluded: boolean, verdict: 'warn' | 'fail'): BuiltIn => ({
    kind: 'http',
    name,
    settings: { get: { url, insecureSkipVerify: true } },
    excluded,
    outcomes: healthy(url, verdict),
  });
  return [
    {
      kind: 'tcpLoadBalancer',
      name: 'Kubernetes API Server Load Balancer',
      settings: { port: 6443, address: balancer, timeout: '3m' },
      excluded: !isFirst || isUpgrade,
      outcomes: [
        ['fail', 'invalid-address', `The load balancer address ${balancer} is not valid`],
        ...reachable(`${balancer} by the load balancer`, 'warn'),
        ['warn', 'address-in-use', 'Port 6443 is in use'],
        ['pass', 'connected', `The load balancer ${balancer} forwards to this machine`],
        ['warn', '', 'The status of the load balancer is unexpected'],
      ],
    },
    health('Kubernetes API Server Load Balancer Upgrade', `https://${address}/healthz`, !isFirst || !isUpgrade, 'fail'),
    {
      kind: 'tcpConnect',
      name: 'Kubernetes API TCP Connection Status',
      settings: { address: master },
      excluded: !hasKubernetes || master === '' || !isJoin || internal,
      outcomes: [
        ...reachable(`the Kubernetes API at ${master}`, 'fail'),
        ['pass', 'connected', `The Kubernetes API at ${master} can be reached`],
      ],
    },
    {
      kind: 'http',
      name: 'Clock of the Kubernetes API',
      settings: { get: { url: `https://${master}/healthz`, insecureSkipVerify: true, timeout: '10s' } },
      excluded: !hasKubernetes || master === '' || !isJoin || internal,
      outcomes: [
        ['warn', 'error', `The clock of ${master} is unknown: no response`],
        ['fail', 'clockSkew > 300', `${AHEAD} ${master} by more than 5 minutes: no certificate may be valid here`],
        ['warn', 'clockSkew > 60', `${AHEAD} ${master} by more than a minute`],
        ['pass', '', `The clock of this machine agrees with that of ${master}`],
      ],
    },
    health('Kubernetes API Health', 'https://localhost:6443/healthz', !isPrimary || !isUpgrade, 'warn'),
    ...otherNodes(situation),
    ...keyPairs(!isPrimary || !isUpgrade),
  ];
}

/** A node that joins must reach the others (kurl.md 8.2). */
function otherNodes({ isPrimary, isJoin, isUpgrade, primaryHosts, secondaryHosts }: Situation): readonly BuiltIn[] {
  if (!isJoin || isUpgrade) return [];
  const to =
    (what: string, port: number) =>
    (host: string): BuiltIn => {
      const address = host.includes(':') && !host.startsWith('[') ? `[${host}]:${port}` : `${host}:${port}`;
      return {
        kind: 'tcpConnect',
        name: `${what} ${address}`,
        settings: { address, timeout: '5s' },
        outcomes: [
          ...reachable(`${what} at ${address}`, 'fail'),
          ['pass', 'connected', `${what} at ${address} can be reached`],
        ],
      };
    };
  const others = [...primaryHosts, ...secondaryHosts];
  return [
    ...primaryHosts.map(to('Kubernetes API', 6443)),
    ...(isPrimary ? others.map(to('Kubelet API', 10_250)) : []),
    ...(isPrimary ? [2379, 2380].flatMap((port) => primaryHosts.map(to('ETCD', port))) : []),
  ];
}

function keyPairs(excluded: boolean): readonly BuiltIn[] {
  const pair = (name: string, path: string): BuiltIn => ({
    kind: 'certificate',
    name: `${name} key pair certificate`,
    settings: { certificatePath: `${path}.crt`, keyPath: `${path}.key` },
    excluded,
    outcomes: [
      ['fail', 'key-pair-missing', `${path}.crt or ${path}.key is missing`],
      ['fail', 'key-pair-switched', `${path}.crt and ${path}.key are switched`],
      ['fail', 'key-pair-encrypted', `${path}.key is encrypted`],
      ['fail', 'key-pair-mismatch', `${path}.crt and ${path}.key do not match`],
      ['fail', 'key-pair-invalid', `${path}.crt or ${path}.key is not valid`],
      ['pass', 'key-pair-valid', `${path}.crt and ${path}.key match`],
    ],
  });
  return [
    pair('Kubernetes API', '/etc/kubernetes/pki/apiserver'),
    pair('Kubernetes ETCD', '/etc/kubernetes/pki/etcd/server'),
  ];
}

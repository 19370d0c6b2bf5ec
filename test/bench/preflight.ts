/** Host preflights of a spec with ten add-ons: all at once, so that they take as long as the slowest of them. */
import { assembleSpecs, type AddonSpec } from '../../src/runtime/preflight/assemble.ts';
import { runPreflights } from '../../src/runtime/preflight/run.ts';
import { parseInstaller } from '../../src/spec/parse.ts';
import { noReport } from '../support/context.ts';
import { specText } from '../support/preflight.ts';
import { startServer } from '../support/web-server.ts';
import type { Options } from './images.ts';
import { pairwise, spread } from './measure.ts';
import { range, type Section } from './report.ts';

const ADDONS = [
  'containerd',
  'weave',
  'rook',
  'prometheus',
  'kotsadm',
  'longhorn',
  'flannel',
  'registry',
  'velero',
  'contour',
];
/** What an answer takes that does not come. */
const SILENCE = '2s';

/** Looks like the preflights of kURL's add-ons: ports, another machine, disks, devices, the system, a web server. */
function specOf(addon: string, at: number, url: string): AddonSpec {
  const port = 46_000 + at;
  const text = specText(`  collectors:
    - hostOS: {}
    - blockDevices: {}
    - tcpPortStatus: {collectorName: "${addon} port", port: ${port}, interface: lo}
    - udpPortStatus: {collectorName: "${addon} udp", port: ${port}}
    - tcpConnect: {collectorName: "${addon} peer", address: "127.0.0.1:1", timeout: 10s}
    - diskUsage: {collectorName: "${addon} disk", path: /var/lib/${addon}, exclude: '{{kurl .IsUpgrade }}'}
    - run: {collectorName: "${addon} tool", command: sh, args: ['-c', 'sleep 0.5']}
    - http: {collectorName: "${addon} web", get: {url: '${url}', timeout: ${SILENCE}}}
  analyzers:
    - tcpPortStatus: {collectorName: "${addon} port", outcomes: [{pass: {when: connected, message: free}}, {warn: {message: used}}]}
    - diskUsage: {collectorName: "${addon} disk", outcomes: [{fail: {when: total < 1Gi, message: small}}, {pass: {message: fine}}]}
    - http: {collectorName: "${addon} web", outcomes: [{warn: {when: error, message: silent}}, {pass: {message: fine}}]}
`);
  return { addon, file: `${addon}: host-preflight.yaml`, text };
}

export async function benchPreflight({ rounds, say }: Options): Promise<Section> {
  await using silent = await startServer(() => ({ status: 200, sending: 'never' }));
  const rows = ADDONS.map((name) => `  ${name}: {version: 1.0.0}\n`).join('');
  const { installer } = parseInstaller(
    'installer.yaml',
    `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nspec:\n${rows}`,
  );
  const situation = {
    installer,
    versions: new Map<string, string>(),
    isPrimary: false,
    isJoin: false,
    isUpgrade: false,
    primaryHosts: [],
    secondaryHosts: [],
  };
  const whole: number[] = [];
  const slowest: number[] = [];
  const sums: number[] = [];
  const { signal } = new AbortController();
  for (let round = 0; round < rounds; round += 1) {
    const start = performance.now();
    const addons = ADDONS.map((addon, at) => specOf(addon, at, silent.url));
    const { specs } = assembleSpecs(situation, { addons, others: [], builtIn: true });
    const env = { PATH: process.env['PATH'] };
    const { facts } = await runPreflights(specs, { root: '/', env, tool: '' }, { report: noReport, signal });
    whole.push((performance.now() - start) / 1000);
    const times = facts.facts.map(({ ms }) => ms / 1000);
    slowest.push(Math.max(...times));
    sums.push(times.reduce((sum, seconds) => sum + seconds, 0));
  }
  say('host preflights measured');
  const quotient = pairwise(whole, slowest);
  return {
    title: 'Host preflights',
    about: `All checks of a spec with ${ADDONS.length} add-ons and the built-in checks, from spec texts to results. The slowest waits for a web server that never responds, with a limit of ${SILENCE}.`,
    table: [
      ['what', 'seconds'],
      ['all of them', range(spread(whole))],
      ['the slowest collector', range(spread(slowest))],
      ['one after the other', range(spread(sums))],
    ],
    targets: [{ name: 'all ÷ slowest', wanted: '≤ 1.2', measured: range(quotient), met: quotient.median <= 1.2 }],
  };
}

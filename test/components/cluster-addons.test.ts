/** The add-ons of this repository that run on a cluster, on a real API server: what they apply, by their settings, and what they remove. */
import { execa } from 'execa';
import { mkdir, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { cannotRun, oracle, ROOT } from './support/programs.ts';

const test = suite('add-ons of a cluster', { timeoutMs: 300_000 });

interface Case {
  readonly name: string;
  readonly variable: string;
  /** Objects that exist afterwards, as kubectl names them. */
  readonly objects: readonly string[];
  /** A setting, and what is shown of an object by a path of JSON before it and after. */
  readonly setting: string;
  readonly shown: readonly string[];
  readonly before: RegExp;
  readonly after: RegExp;
}

const CASES: readonly Case[] = [
  {
    name: 'metrics-server',
    variable: 'METRICS_SERVER_VERSION',
    objects: ['apiservice/v1beta1.metrics.k8s.io', 'deployment/metrics-server', 'service/metrics-server'],
    setting: 'METRICS_SERVER_VERIFY_KUBELETS=1',
    shown: ['--namespace', 'kube-system', 'deployment/metrics-server', '-o', 'jsonpath={..args}'],
    before: /--kubelet-insecure-tls/,
    after: /^(?!.*insecure).*--metric-resolution/,
  },
  {
    name: 'local-path',
    variable: 'LOCAL_PATH_VERSION',
    objects: [
      'storageclass/local-path',
      'configmap/local-path-config',
      'deployment/local-path-provisioner',
      'serviceaccount/local-path-helper',
    ],
    setting: 'LOCAL_PATH_PATH=/data/volumes LOCAL_PATH_IS_DEFAULT_STORAGE_CLASS=',
    shown: [
      '--namespace',
      'local-path-storage',
      'configmap/local-path-config',
      'storageclass/local-path',
      '-o',
      'yaml',
    ],
    // The provisioner's own variables are left in its scripts.
    before:
      /"paths": \["\/var\/lib\/local-path"\][^]*mkdir .*"\$VOL_DIR"[^]*rm -rf "\$VOL_DIR"[^]*is-default-class: "true"/,
    after: /"paths": \["\/data\/volumes"\][^]*is-default-class: "false"/,
  },
  {
    name: 'traefik',
    variable: 'TRAEFIK_VERSION',
    objects: ['ingressclass/traefik', 'daemonset/traefik', 'serviceaccount/traefik'],
    setting: 'TRAEFIK_HTTP_PORT=8081 TRAEFIK_IS_DEFAULT_INGRESS_CLASS=',
    shown: ['--namespace', 'traefik', 'daemonset/traefik', '-o', 'jsonpath={..hostPort}'],
    before: /^80 443/,
    after: /^8081 443/,
  },
];

const why = cannotRun(...API_SERVER_PROGRAMS);
if (why !== undefined) test.skip('add-ons of a cluster', why);
else {
  test('each add-on is applied by its settings, again without a change, and removed', async () => {
    await using folder = await tree();
    await using server = await startApiServer(folder.at('server'));
    for (const one of CASES) await isAppliedAndRemoved(one, server);
  });
}

async function isAppliedAndRemoved(
  { name, variable, objects, setting, shown, before, after }: Case,
  server: ApiServer,
): Promise<void> {
  await using box = await tree();
  const [version = ''] = (await readdir(join(ROOT, 'addons', name))).filter((one) => /^\d/.test(one));
  await mkdir(box.at('addons'));
  await execa('cp', ['-r', join(ROOT, 'addons', name), box.at('addons', name)]);
  const call = async (words: string): Promise<string> => {
    const script = `set -eE; DIR=$PWD; for file in "$1"/*.sh; do . "$file"; done
      ${variable}=${version}; . "addons/${name}/${version}/install.sh"; ${words}`;
    const env = {
      KUBECONFIG: server.kubeconfig,
      PATH: `${dirname(oracle('../api-server/kubectl'))}:${process.env['PATH'] ?? ''}`,
    };
    const options = { cwd: box.path, env, all: true } as const;
    return (await execa('bash', ['-c', script, 'bash', join(ROOT, 'scripts/lib')], options)).all;
  };
  const left = async (): Promise<readonly string[]> => {
    const kinds = [...new Set(objects.map((one) => one.split('/')[0]))].join(',');
    const list = await server.kubectl(['get', kinds, '--all-namespaces', '-o', 'name']);
    const names = list.split('\n').map((one) => one.replace(/^([a-z]+)[.a-z0-9]*\//, '$1/'));
    return objects.filter((one) => names.includes(one));
  };
  await call(`${name}; ${name}_already_applied`);
  assert.equal(await left(), objects);
  assert.match(await server.kubectl(['get', ...shown]), before);
  await call(`${setting}; ${name}`);
  assert.match(await server.kubectl(['get', ...shown]), after);
  // kubectl cannot compare the text of a Secret with what the server has made of it.
  const changes = (await call(`${setting}; ${name}`))
    .split('\n')
    .filter((line) => /(?:configured|created)$/.test(line));
  assert.equal(changes, [`secret/${name}-troubleshoot configured`]);
  // With a node, nothing counts before it runs there.
  const node = JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'one' } });
  assert.match(await call(`echo '${node}' | kubectl create -f -; ${name}_already_applied || echo waits`), /waits$/m);
  await server.kubectl(['delete', 'node', 'one']);
  // An API server alone never ends a namespace.
  await call(
    `kubectl() { if [[ $1 == delete ]]; then set -- "$@" --wait=false; fi; command kubectl "$@"; }; ${name}_pre_remove`,
  );
  assert.equal(await left(), []);
  assert.match(await call(`${name}_uninstall`), `${name} is removed from this node`);
}

test.run();

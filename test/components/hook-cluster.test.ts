/** The functions of scripts/lib that ask the cluster, with the real kubectl and a real API server. */
import { execa } from 'execa';
import { dirname, join } from 'node:path';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { cannotRun, oracle, ROOT } from './support/programs.ts';

const test = suite('hooks and a real API server', { timeoutMs: 240_000 });

const reason = cannotRun(...API_SERVER_PROGRAMS);
if (reason === undefined) {
  let box: Tree;
  let server: ApiServer;

  /** Runs a line of a hook; the last line that it prints is its status. */
  const hook = async (line: string): Promise<string> => {
    const load = `for file in "${join(ROOT, 'scripts/lib')}"/*.sh; do source "$file"; done; set -eE`;
    const path = `${dirname(oracle('../api-server/kubectl'))}:${process.env['PATH'] ?? ''}`;
    const env = { PATH: path, HOME: box.path, KUBECONFIG: server.kubeconfig, HOSTNAME: 'node-1', DIR: '.' };
    const script = `${load}\n(${line}\n) 2>&1 && echo "status 0" || echo "status $?"`;
    const options = { reject: false, stdin: 'ignore', cwd: box.path, extendEnv: false, env } as const;
    const { stdout } = await execa('bash', ['-c', script], options);
    return stdout;
  };
  const status = async (line: string): Promise<number> => Number(/status (\d+)$/.exec(await hook(line))?.[1]);
  const apply = async (...documents: readonly unknown[]): Promise<void> => {
    await server.kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: documents }));
  };
  const setStatus = async (kind: string, name: string, value: unknown): Promise<void> => {
    const patch = JSON.stringify({ status: value });
    await server.kubectl(['patch', kind, name, '-n', 'demo', '--subresource=status', '--type=merge', '-p', patch]);
  };

  const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i:1' }] } };
  const workload = (kind: string, name: string, spec: Readonly<Record<string, unknown>>): unknown => ({
    apiVersion: 'apps/v1',
    kind,
    metadata: { name, namespace: 'demo' },
    spec: { selector: { matchLabels: { app: 'a' } }, template, ...spec },
  });
  const pod = (name: string): unknown => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'demo', labels: { app: name } },
    spec: template.spec,
  });

  test.before(async () => {
    box = await tree();
    server = await startApiServer(box.at('server'));
    for (const name of ['demo', 'kurl', 'rook-ceph']) await server.kubectl(['create', 'namespace', name]);
    await server.kubectl(['create', 'serviceaccount', 'default', '-n', 'demo']);
  });
  test.after(async () => {
    await server[Symbol.asyncDispose]();
    await box[Symbol.asyncDispose]();
  });

  test('secrets, and what exists', async () => {
    await server.kubectl(['create', 'secret', 'generic', 's', '-n', 'demo', '--from-literal=tls.crt=value of it']);
    assert.is(await hook(String.raw`kubernetes_secret_value demo s 'tls\.crt'; echo`), 'value of it\nstatus 0');
    assert.is(await hook('kubernetes_secret_value demo s none; kubernetes_secret_value demo none x'), 'status 0');
    assert.is(await hook('kubernetes_resource_exists demo secret s'), 'status 0');
    assert.is(await hook('kubernetes_resource_exists demo secret t'), 'status 1');
    assert.is(await hook('kubernetes_resource_exists demo nonsense t'), 'status 1');
  });

  test('deployments, statefulsets and daemonsets by their numbers', async () => {
    for (const [kind, spec] of [
      ['Deployment', { replicas: 2 }],
      ['StatefulSet', { replicas: 2, serviceName: 'w' }],
    ] as const) {
      const updated = `${kind.toLowerCase()}_fully_updated demo w`;
      assert.is(await status(updated), 0, 'one that is missing counts as updated');
      await apply(workload(kind, 'w', spec));
      const numbers = { replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1 };
      await setStatus(kind, 'w', numbers);
      assert.is(await status(updated), 1);
      await setStatus(kind, 'w', { ...numbers, readyReplicas: 2, availableReplicas: 2 });
      assert.is(await status(updated), 0);
    }
    await apply(workload('DaemonSet', 'd', {}));
    const numbers = { desiredNumberScheduled: 3, currentNumberScheduled: 3, numberReady: 3, numberMisscheduled: 0 };
    await setStatus('daemonset', 'd', { ...numbers, numberAvailable: 3, updatedNumberScheduled: 2 });
    assert.is(await status('daemonset_fully_updated demo d'), 1);
    await setStatus('daemonset', 'd', { ...numbers, numberAvailable: 3, updatedNumberScheduled: 3 });
    assert.is(await status('daemonset_fully_updated demo d'), 0);
    assert.is(await status('kubernetes_scale_down demo deployment w && kubernetes_scale_down demo deployment none'), 0);
    assert.is(await server.kubectl(['get', 'deployment', 'w', '-n', 'demo', '-o', 'jsonpath={.spec.replicas}']), '0');
  });

  test('pods: their phases, their containers, and that they are gone', async () => {
    assert.is(await status('check_for_running_pods demo'), 0);
    const ready = (value: boolean): unknown => [
      { name: 'c', ready: value, restartCount: 0, image: 'i:1', imageID: 'i', state: {} },
    ];
    await apply(pod('good'), pod('bad'), pod('evicted'), pod('done'));
    await setStatus('pod', 'good', { phase: 'Running', containerStatuses: ready(true) });
    await setStatus('pod', 'bad', { phase: 'Running', containerStatuses: ready(false) });
    await setStatus('pod', 'evicted', { phase: 'Failed', reason: 'Evicted' });
    await setStatus('pod', 'done', { phase: 'Succeeded' });
    assert.is(
      await hook('check_for_running_pods demo || { echo "unhealthy:$UNHEALTHY_PODS"; false; }'),
      'unhealthy: bad\nstatus 1',
    );
    await setStatus('pod', 'bad', { phase: 'Running', containerStatuses: ready(true) });
    assert.is(await status('check_for_running_pods demo'), 0);
    assert.is(await status('kubernetes_pod_started good demo && ! kubernetes_pod_completed good demo'), 0);
    assert.is(await status('kubernetes_pod_completed done demo && kubernetes_pod_succeeded done demo'), 0);
    assert.is(await status('spinnerPodRunning demo goo'), 0);
    assert.is(await status('pods_gone_by_selector demo app=good'), 1);
    assert.is(await status('pods_gone_by_selector demo app=none && ekco_pods_gone && prometheus_pods_gone'), 0);
  });

  test('services and nodes', async () => {
    const metadata = { name: 'web', namespace: 'demo' };
    await apply({ apiVersion: 'v1', kind: 'Endpoints', metadata, subsets: [] });
    assert.is(await status('kubernetes_service_healthy demo web'), 1);
    const subsets = [{ addresses: [{ ip: '10.0.0.5' }], ports: [{ port: 80 }] }];
    await apply({ apiVersion: 'v1', kind: 'Endpoints', metadata, subsets });
    assert.is(await status('kubernetes_service_healthy demo web'), 0);
    assert.is(await status('kubernetes_service_healthy demo none'), 1);

    assert.is(await status('kubernetes_any_node_ready'), 1);
    const annotations = { 'kubeadm.alpha.kubernetes.io/cri-socket': '/var/run/dockershim.sock' };
    const labels = { 'node-role.kubernetes.io/control-plane': '', 'kubernetes.io/hostname': 'node-1' };
    await apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1', annotations, labels } });
    const images = [{ names: ['docker.io/library/a:1', 'docker.io/library/a@sha256:0'], sizeBytes: 1 }];
    await setStatus('node', 'node-1', { conditions: [{ type: 'Ready', status: 'True' }], images });
    assert.is(await status('kubernetes_any_node_ready && node_is_using_docker && ! kubernetes_has_remotes'), 0);
    assert.is(await hook('kubernetes_get_control_plane_label'), 'node-role.kubernetes.io/control-plane\nstatus 0');
    assert.is(await status('kubernetes_node_has_image node-1 a:1'), 0);
    assert.is(await status('kubernetes_node_has_image node-1 a:2'), 1);
    await apply({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'node-2', labels: { 'kubernetes.io/hostname': 'node-2' } },
    });
    assert.is(await status('kubernetes_has_remotes'), 0);
  });

  test('notes of migrations, versions of Ceph, EKCO', async () => {
    assert.is(await status('add_rook_pvc_migration_status 1 && add_rook_store_object_migration_status 0'), 0);
    const path = ['get', 'configmap', 'kurl-migration-from-rook', '-n', 'kurl', '-o', 'jsonpath={.data}'];
    assert.is(await server.kubectl(path), '{"DID_MIGRATE_ROOK_OBJECT_STORE":"0","DID_MIGRATE_ROOK_PVCS":"1"}');
    const labels = { rook_cluster: 'rook-ceph', 'ceph-version': '16.2.9-0', 'rook-version': 'v1.9.12' };
    const deployment = (name: string, extra: Readonly<Record<string, string>>): unknown => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: 'rook-ceph', labels: { ...labels, ...extra } },
      spec: { selector: { matchLabels: { app: 'a' } }, template },
    });
    await apply(deployment('rook-ceph-mgr-a', {}), deployment('other', { 'ceph-version': '0.0.0-0' }));
    assert.is(await hook('current_ceph_version'), '16.2.9\nstatus 0');
    assert.is(await status("curlew_single_label rook-version '' && curlew_single_label ceph-version 0.0.0-0"), 0);
    await apply(deployment('third', { 'rook-version': 'v1.8.10' }));
    assert.match(await hook("curlew_single_label rook-version ''"), /v1\.8\.10 v1\.9\.12.*\nstatus 1$/);
    assert.is(await status('rook_disable_ekco_operator && rook_enable_ekco_operator'), 0);
    assert.match(await hook('maybe_cleanup_rook'), /Rook is no longer in the installer spec/);
  });

  test('what insert_* and render_* write, kubectl applies', async () => {
    const said = await hook(`
      mkdir -p kustomize/demo && cd kustomize/demo
      printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata:\\n  name: "$NAME"\\n  namespace: demo\\ndata:\\n  a: "1"\\n' >tmpl.yaml
      NAME=rendered
      render_yaml_file_2 tmpl.yaml >map.yaml
      printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata:\\n  name: rendered\\n  namespace: demo\\ndata:\\n  a: "2"\\n' >patch.yaml
      printf -- '- {op: add, path: /data/b, value: "3"}\\n' >json.yaml
      insert_resources kustomization.yaml map.yaml
      insert_patches_strategic_merge kustomization.yaml patch.yaml
      insert_patches_json_6902 kustomization.yaml json.yaml '' v1 ConfigMap rendered demo
      kubectl apply -k .`);
    assert.match(said, /status 0$/);
    const data = ['get', 'configmap', 'rendered', '-n', 'demo', '-o', 'jsonpath={.data}'];
    assert.is(await server.kubectl(data), '{"a":"2","b":"3"}');
    assert.is(await hook('insert_bases k.yaml ../base && cat k.yaml'), 'resources:\n- ../base\nstatus 0');
  });

  test('an API server that is gone: nothing exists, nothing is gone, nothing hangs', async () => {
    await server.kill();
    assert.is(await status('kubernetes_resource_exists demo secret s'), 1);
    assert.is(await hook(String.raw`kubernetes_secret_value demo s 'tls\.crt'`), 'status 0');
    assert.is(await status('pods_gone_by_selector demo app=none'), 1);
    assert.is(await status('kubernetes_any_node_ready || kubernetes_has_remotes'), 1);
    assert.is(await status('kubernetes_scale_down demo deployment w'), 0);
  });
} else {
  test.skip('all of it', reason);
}

test.run();

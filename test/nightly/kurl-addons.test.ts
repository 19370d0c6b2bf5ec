/**
 * Add-ons in the manner of kURL's, by a bundle's own scripts on nodes of their own: against a real API server, containerd 1.6
 * on the primary and 2 on the node that joins, a real S3 server, dpkg.
 */
import { readFile } from 'node:fs/promises';
import { executableFileName } from '../../src/core/layout.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { built } from '../support/built.ts';
import { OWN } from '../components/support/executables.ts';
import {
  cannotPlay,
  field,
  generations,
  hooksOf,
  openKurlScene,
  outcomesOf,
  script,
  secret,
  withController,
  type KurlScene,
  type RunJson,
} from '../components/support/kurl-scene.ts';

const test = suite('add-ons of kURL', { timeoutMs: 600_000 });
const reason = cannotPlay();

/** Hooks in the order of a node. */
const IN_CLUSTER = ['flannel', 'rook', 'registry', 'prometheus', 'velero'];
const ADDONS = ['containerd', 'kubernetes', ...IN_CLUSTER];
/** Hooks before and after those. */
const RUNTIME = ['containerd_install', 'kubernetes', 'registry_init'];
const LAST = ['rook_post_init', 'prometheus_outro', 'velero_outro'];
/** Hooks of nodes in addition to the primary. */
const JOINS = ['flannel_join', 'rook_join', 'registry_join', 'velero_join'];

interface CephCluster {
  readonly spec: unknown;
  readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
}
interface Container {
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
}
interface Location {
  readonly spec: { readonly objectStorage: unknown; readonly config: unknown };
}

let scene: KurlScene;

/** The address of the object store. */
const gateway = (): string => scene.objectStore.slice('http://'.length);

if (reason === undefined) {
  test.before(async () => {
    scene = await openKurlScene();
  });
  test.after(async () => scene[Symbol.asyncDispose]());

  test("a primary is installed: every hook, in kURL's order", async () => {
    const installing = script(scene, scene.primary, 'first', `install.sh --set rook.gatewayAddress=${gateway()}`);
    const result = await withController(scene, installing);
    assert.equal(await hooksOf(scene.primary, result), [
      ...ADDONS.map((name) => `${name}_pre_init`),
      ...RUNTIME,
      ...IN_CLUSTER,
      ...LAST,
    ]);
    assert.equal(new Set(Object.values(outcomesOf(result))), new Set(['installed']));
    const checks = await scene.primary.run(`cat /var/lib/curlew/runs/${result.run}/preflight.json`);
    for (const title of ['containerd and this system', 'Flannel UDP port 8472 status', 'Ceph MON']) {
      assert.match(checks, `"${title}"`);
    }
    const [grafana, backups] = result.messages.map(({ text }) => text);
    const password = await secret(scene, 'monitoring', 'grafana-admin', 'admin-password');
    assert.match(password, /^[A-Za-z0-9]{9}$/);
    assert.match(grafana ?? '', `user:password of admin:${password} .`);
    assert.match(backups ?? '', 'Backups go to velero-bucket; restic waits 4h0m0s');
  });

  test('host packages, images and containerd of the primary', async () => {
    const packages = "dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\\n' 'zebra-*'";
    assert.is(await scene.primary.run(packages), 'zebra-app 2.0-1 installed\nzebra-lib 1.0 installed');
    const images = (await scene.primary.run('ctr -n k8s.io images list -q')).split('\n');
    for (const name of [
      'registry.k8s.io/pause:3.9',
      'k8s.gcr.io/pause:3.9',
      'registry.k8s.io/coredns:v1.12.1',
      'docker.io/epicsoft/bcrypt:1.0',
      'registry.example/ceph/ceph:v19.2.3',
    ]) {
      assert.ok(images.includes(name), `${name} in ${images.join(' ')}`);
    }
    assert.match(await scene.primary.run('ctr version | grep Version'), / 1\.[67]\./);
    assert.match(
      await scene.primary.run('cat /etc/containerd/config.toml'),
      'sandbox_image = "registry.k8s.io/pause:3.9"',
    );
    const proxy = await scene.primary.run('cat /etc/systemd/system/containerd.service.d/http-proxy.conf');
    assert.match(
      proxy,
      /^Environment="HTTP_PROXY=http:\/\/proxy\.example:3128" "NO_PROXY=[^"]*\b10\.0\.0\.0\/8,[^"]*registry\.example[^"]*"$/m,
    );
  });

  test('patches that add-ons leave for kubeadm come out of kustomize and render_yaml_file', async () => {
    const file = await scene.primary.run('cat /opt/replicated/kubeadm.conf');
    for (const line of [
      'kubernetesVersion: v1.34.4',
      '  podSubnet: 10.217.0.0/20',
      '  serviceSubnet: 10.96.0.0/22',
      '  criSocket: /run/containerd/containerd.sock',
      '  name: node-1',
    ]) {
      assert.ok(file.split('\n').includes(line), `${line} in ${file}`);
    }
    assert.is(await scene.primary.run('cat /root/kubeadm'), 'init --config /opt/replicated/kubeadm.conf');
  });

  test('objects of flannel and rook: resources, strategic and JSON patches, fields that kustomize migrated', async () => {
    const network = await field(scene, '.data.net-conf\\.json', '-n', 'kube-flannel', 'configmap', 'kube-flannel-cfg');
    assert.equal(JSON.parse(network), { Network: '10.217.0.0/20', Backend: { Type: 'vxlan' } });
    const flannel = ['-n', 'kube-flannel', 'daemonset', 'kube-flannel-ds'] as const;
    const env = '.spec.template.spec.containers[0].env[*].name';
    assert.is(await field(scene, env, ...flannel), 'FLANNELD_PUBLIC_IP POD_NAME');
    const troubleshoot = ['-n', 'kurl', 'secret', '-l', 'troubleshoot.io/kind=support-bundle'] as const;
    assert.is(await field(scene, '.items[*].metadata.name', ...troubleshoot), 'kurl-flannel-troubleshoot-spec');

    const operator = ['-n', 'rook-ceph', 'deployment', 'rook-ceph-operator'] as const;
    assert.is(await field(scene, env, ...operator), 'ROOK_LOG_LEVEL ROOK_HOSTPATH_REQUIRES_PRIVILEGED');
    assert.is(await field(scene, '.spec.template.spec.tolerations[0].operator', ...operator), 'Exists');
    const cluster = JSON.parse(await field(scene, '', '-n', 'rook-ceph', 'cephcluster', 'rook-ceph')) as CephCluster;
    assert.equal(cluster.spec, { mon: { count: 1 }, storage: { useAllDevices: true, deviceFilter: 'sd[b-z]' } });
    assert.is(cluster.metadata.annotations['kurl.sh/post-init'], 'done');
  });

  test("velero's plugins: the image that KURL_UTIL_IMAGE names is there, and the API server takes it", async () => {
    const plugins = ['registry.example/velero/velero-plugin-for-aws:v1.14.2', 'registry.example/curlew-utils:1.0.0'];
    const deployment = ['-n', 'velero', 'deployment', 'velero'] as const;
    const images = await field(scene, '.spec.template.spec.initContainers[*].image', ...deployment);
    assert.equal(images.split(' ').toSorted(), plugins.toSorted());
    const loaded = (await scene.primary.run('ctr -n k8s.io images list -q')).split('\n');
    for (const image of plugins) assert.ok(loaded.includes(image), image);
  });

  test('objects of registry, prometheus and velero: what earlier hooks found out is in them', async () => {
    const service = ['-n', 'kurl', 'service', 'registry'] as const;
    assert.is(await field(scene, '.spec.ports[0].nodePort', ...service), '30500');
    const config = await field(scene, '.data.config\\.yml', '-n', 'kurl', 'configmap', 'registry-config');
    assert.match(config, `regionendpoint: "http://${gateway()}"`);
    assert.is(await secret(scene, 'kurl', 'registry-s3-secret', 'secret-access-key'), 'secret-of-rook');
    assert.match(await secret(scene, 'kurl', 'registry-htpasswd', 'htpasswd'), /^kurl:\$2[aby]\$/);
    const address = await field(scene, '.spec.clusterIP', ...service);
    const hosts = await scene.primary.run(`cat /etc/containerd/certs.d/${address}/hosts.toml`);
    assert.match(hosts, 'ca = "/etc/kubernetes/pki/ca.crt"');
    await scene.primary
      .run(`kubectl --kubeconfig /etc/kubernetes/admin.conf -n kurl get secret registry-pki -o jsonpath='{.data.registry\\.crt}' |
      base64 -d >/root/crt; openssl verify -CAfile /etc/kubernetes/pki/ca.crt -verify_ip ${address} /root/crt`);

    assert.is(
      await secret(scene, 'monitoring', 'grafana-admin', 'admin-user'),
      'admin',
      'what an install.sh sets by itself wins',
    );
    assert.is(await field(scene, '.spec.ports[0].nodePort', '-n', 'monitoring', 'service', 'grafana'), '30902');
    assert.is(
      await field(scene, '.metadata.name', '-n', 'monitoring', 'servicemonitor', 'rook-ceph-mgr'),
      'rook-ceph-mgr',
    );

    const velero = ['-n', 'velero', 'deployment', 'velero'] as const;
    const container = JSON.parse(await field(scene, '.spec.template.spec.containers[0]', ...velero)) as Container;
    assert.equal(container.args, ['server', '--fs-backup-timeout=4h0m0s']);
    assert.equal(
      container.env.slice(0, 2).map(({ value }) => value),
      ['http://proxy.example:3128', 'http://proxy.example:3128'],
    );
    const location = ['-n', 'velero', 'backupstoragelocation', 'default'] as const;
    const { spec } = JSON.parse(await field(scene, '', ...location)) as Location;
    assert.equal(spec.objectStorage, { bucket: 'velero-bucket' });
    assert.equal(spec.config, {
      s3Url: 'http://rook-ceph-rgw-rook-ceph-store.rook-ceph',
      publicUrl: scene.objectStore,
    });
    assert.match(await secret(scene, 'velero', 'aws-credentials', 'cloud'), 'aws_secret_access_key=secret-of-rook\n');
    for (const bucket of ['docker-registry', 'velero-bucket']) {
      assert.is((await fetch(`${scene.objectStore}/${bucket}`, { method: 'HEAD' })).status, 200, bucket);
    }
  });

  test('a second run: already_applied instead of install, with what is carried to it', async () => {
    const before = await generations(scene);
    const result = await script(scene, scene.primary, 'first', `install.sh --set rook.gatewayAddress=${gateway()}`);
    assert.equal(await hooksOf(scene.primary, result), [
      ...ADDONS.map((name) => `${name}_pre_init`),
      ...IN_CLUSTER.map((name) => `${name}_already_applied`),
      ...LAST,
    ]);
    assert.equal(new Set(Object.values(outcomesOf(result))), new Set(['already applied']));
    assert.match(result.messages.at(-1)?.text ?? '', 'Backups go to the buckets of before');
    assert.equal(await generations(scene), before);
  });

  test('one add-on is upgraded, from a store: the others stay as they are', async () => {
    const spec = (await readFile(scene.at('first/installer.yaml'), 'utf8')).replace('1.18.2', '1.18.3');
    await scene.primary.run(`cat >/root/installer.yaml <<'END'\n${spec}END`);
    const words = ['install', '--from', scene.at('store'), '--installer', '/root/installer.yaml', '--json'];
    const tool = built(executableFileName(OWN));
    const settings = ['--set', `rook.gatewayAddress=${gateway()}`];
    const result = JSON.parse(await scene.primary.run([tool, ...words, ...settings].join(' '))) as RunJson;
    const others = ADDONS.filter((name) => name !== 'velero').map((name) => [name, 'already applied']);
    assert.equal(outcomesOf(result), { ...Object.fromEntries(others), velero: 'installed' });
    const hooks = await hooksOf(scene.primary, result);
    assert.ok(hooks.includes('velero') && hooks.includes('registry_already_applied') && !hooks.includes('registry'));
    const image = '.spec.template.spec.containers[0].image';
    assert.is(
      await field(scene, image, '-n', 'velero', 'deployment', 'velero'),
      'registry.example/velero/velero:v1.18.3',
    );
    assert.match(await scene.primary.run('/usr/local/bin/velero version'), 'v1.18.3');
    assert.match(await scene.primary.run('ctr -n k8s.io images list -q'), 'registry.example/velero/velero:v1.18.3');
  });

  test('a node joins: containerd, images and the join hooks, and nothing of the cluster is touched', async () => {
    const before = await generations(scene);
    const address = await field(scene, '.spec.clusterIP', '-n', 'kurl', 'service', 'registry');
    const flags = [`docker-registry-ip=${address}`, 'kubernetes-master-address=10.0.0.1:6443', 'kubeadm-token=t'];
    const result = await script(scene, scene.joined, 'second', ['join.sh', ...flags].join(' '));
    assert.equal(await hooksOf(scene.joined, result), [
      'containerd_install',
      'kubernetes_pre_init',
      ...JOINS,
      'kubernetes_join',
    ]);
    assert.is(await scene.joined.run('cat /root/kubeadm'), 'join --token t 10.0.0.1:6443');
    assert.match(await scene.joined.run('ctr version | grep Version'), / v?2\./);
    const images = (await scene.joined.run('ctr -n k8s.io images list -q')).split('\n');
    for (const name of [
      'registry.k8s.io/pause:3.9',
      'registry.example/flannel/cni:v1.9.1',
      'k8s.gcr.io/kube-apiserver:v1.34.4',
    ]) {
      assert.ok(images.includes(name), `${name} in ${images.join(' ')}`);
    }
    assert.is(
      await scene.joined.run("dpkg-query -W -f '${Version}' zebra-app; cat /etc/modules-load.d/*rook.conf"),
      '2.0-1rbd',
    );
    await scene.joined.run(
      `/opt/cni/bin/flannel; test -e /etc/containerd/certs.d/${address}/hosts.toml; ! test -e /usr/local/bin/velero`,
    );
    assert.is(await generations(scene), before);
  });

  test('the joined node is upgraded: its containerd stays, kubernetes and add-ons are told', async () => {
    const address = await field(scene, '.spec.clusterIP', '-n', 'kurl', 'service', 'registry');
    const result = await script(scene, scene.joined, 'second', `upgrade.sh docker-registry-ip=${address}`);
    assert.equal(await hooksOf(scene.joined, result), ['kubernetes_pre_init', ...JOINS, 'kubernetes_upgrade']);
    assert.match(await scene.joined.run('tail -n 1 /root/kubeadm'), 'upgrade node');
  });
} else {
  test.skip('all of it', reason);
}

test.run();

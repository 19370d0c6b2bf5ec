/** The blocks of docs/bundle-plans.md, over a store with host packages and a registry at the address of Docker Hub. */
import { cp } from 'node:fs/promises';
import * as assert from '../../support/assert.ts';
import { publishTestPackages, type TestPackage } from '../../support/bundles.ts';
import { makeImage, makeLayer, pushImage } from '../../support/images.ts';
import { unless } from '../../support/needs.ts';
import { noise } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';
import { installerSpec, noPageMachine, pageMachine, type Machine } from '../support/page-machine.ts';
import { startImages } from '../support/page-servers.ts';
import { startRegistry } from '../support/services.ts';

const test = suite('components/pages/bundle-plans', { timeoutMs: 300_000 });
const SPEC = installerSpec('kubernetes: { version: 1.29.9 }', 'longhorn: { version: latest }');
const SCRIPTS = ['install.sh', 'join.sh', 'upgrade.sh', 'tasks.sh'];

function plain(name: string, version: string): TestPackage {
  return { name, version, files: [{ path: 'install.sh', data: `${name}() { :; }\n` }] };
}

function kubernetes(version: string): TestPackage {
  const files = ['rhel-8', 'rhel-9', 'ubuntu-22.04'].map((os) => ({ path: `${os}/kubelet`, data: noise(100_000) }));
  const { name, files: own } = plain('kubernetes', version);
  return { name, version, files: [...own, ...files], extra: { os: ['rhel-8', 'rhel-9', 'ubuntu-22.04'] } };
}

/** Docker Hub of the machine, with one image. */
async function startHub(machine: Machine): Promise<void> {
  const image = makeImage([makeLayer({ 'usr/sbin/nginx': 'nginx\n' })]);
  await using filling = await startRegistry(machine.at('/var/registry'));
  await pushImage(filling.host, 'library/nginx', '1.27', image);
  await startImages(machine);
}

unless(noPageMachine('docker-registry'), test)(
  'bundles are planned, planned differently, and made',
  async ({ signal }) => {
    await using machine = await pageMachine('docs/bundle-plans.md', {
      files: {
        'installer.yaml': SPEC,
        ...Object.fromEntries(SCRIPTS.map((name) => [`from-kurl/${name}`, `#!/bin/sh\necho kURL's ${name}\n`])),
        'from-kurl/kurl/manifests/a.yaml': 'a: b\n',
      },
      hosts: ['registry-1.docker.io'],
    });
    await using box = await tree();
    const packages = [
      ...['1.27.16', '1.28.2', '1.28.15', '1.29.9'].map(kubernetes),
      plain('longhorn', '1.6.2'),
      plain('prometheus', '0.79.0'),
      plain('velero', '1.12.3'),
      plain('velero', '1.13.0'),
    ];
    await publishTestPackages(box, packages, signal);
    await cp(box.at('store'), machine.at('/srv/dist'), { recursive: true });

    assert.match(
      await machine.block('shows it without writing it'),
      /^copy 103 kB of r1\/kubernetes-1\.29\.9\.tar\.gz$/m,
    );
    const more = await machine.block('--with prometheus');
    assert.match(more, /^prometheus 0\.79\.0 \(.*, not in the spec, latest\)$/m);
    assert.match(more, /^velero 1\.12\.3 \(.*, not in the spec, greatest patch of 1\.12\)$/m);
    assert.match(more, /^kubernetes 1\.28\.15 \(.*, on the way from 1\.27\.3 to 1\.29\.9\)$/m);
    assert.not.match(await machine.run('tar -xOzf less.tar.gz installer.yaml bundle.json'), 'longhorn');

    const systems = await machine.block('--os ubuntu-22.04');
    assert.match(systems, 'host packages for ubuntu-22.04 only: 200 kB omitted');
    assert.match(systems, 'host packages for rhel-8, rhel-9 only: 100 kB omitted');
    await machine.run(`rm /etc/os-release && printf 'ID="rocky"\nVERSION_ID="8.9"\n' >/etc/os-release`);
    await machine.block('error UNSUPPORTED');

    await startHub(machine);
    assert.match(await machine.block('--image docker.io'), /^extra-images \w+ \(.*, requested images: 1\)$/m);

    await machine.block('--layout kurl');
    const entries = (await machine.run('tar -tzf kurl.tar.gz')).split('\n');
    assert.equal(entries.slice(0, SCRIPTS.length), SCRIPTS);
    for (const name of ['kurl/manifests/a.yaml', 'kurl/addons/kubernetes/1.29.9/install.sh']) {
      assert.ok(entries.includes(name), name);
    }

    const plans = await machine.block('--from-plan');
    assert.is(plans.match(/^identical to the previous bundle, byte for byte$/gm)?.length, 2);
    await machine.run('cmp plan.json new.json && cmp planned.tar.gz bundle.tar.gz');
    assert.equal(machine.left(), []);
  },
);

test.run();

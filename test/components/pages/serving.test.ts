/** The commands of docs/serving.md: servers of a folder and of a bucket, and their clients. */
import { cp } from 'node:fs/promises';
import * as assert from '../../support/assert.ts';
import { publishImages } from '../../support/image-release.ts';
import { makeImage, makeLayer } from '../../support/images.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';
import { installerSpec, noPageMachine, pageMachine, plainAddons } from '../support/page-machine.ts';
import { makeNode } from '../support/page-node.ts';
import { S3_ENVIRONMENT, S3_PROGRAM, startBuckets } from '../support/page-servers.ts';
import { oracle } from '../support/programs.ts';

const test = suite('components/pages/serving', { timeoutMs: 300_000 });
const { signal } = new AbortController();
const HOST = 'addons.example';

unless(noPageMachine('curl', 'openssl', 'skopeo', oracle('crane'), S3_PROGRAM), test)(
  'every command of the page works',
  async () => {
    await using box = await tree();
    await using machine = await pageMachine('docs/serving.md', {
      files: {
        ...plainAddons('kubernetes@1.31.5', 'flannel@0.26.1', 'shop@1.0.0'),
        'addons/flannel/0.26.1/install.sh': 'function flannel() { echo "$FLANNEL_MTU" >/etc/flannel.txt; }\n',
        'installer.yaml': installerSpec('flannel: { version: latest }'),
      },
      hosts: [HOST],
      env: S3_ENVIRONMENT,
    });
    await startBuckets(machine, ['bucket']);
    await machine.run(`ln -s /etc/page.crt site.crt
ln -s /etc/page.key site.key
curlew publish --to /srv/dist --release v1
curlew keygen release
mkdir -p /etc/curlew
cp release.pub /etc/curlew/
curlew publish --to s3://bucket/dist --release v1 --sign release.key`);
    await machine.block('curlew serve --store s3://bucket/dist --listen :8443');
    assert.match(await machine.run(`curl -fsS https://${HOST}:8443/`), 'everything for an offline installation');
    await machine.run('curlew serve --store /srv/dist');
    await makeNode(machine);
    await machine.block('flannel:mtu=1400');
    assert.is(await machine.run('cat /etc/flannel.txt'), '1400');
    await machine.run('curlew verify bundle.tar.gz');
    const id = await machine.run('curlew installer id installer.yaml');
    assert.match(await machine.block('openssl rand'), `http://127.0.0.1:8080/${id}`);
    await machine.run('cp installer.yaml /srv/dist/installers/shop.yaml');
    assert.match(
      await machine.block('ha --preflights ignore'),
      /flannel +0\.26\.1 +installed \(its settings have changed\)/,
    );
    await machine.run('cp -r /srv/dist/installers /var/s3/data/bucket/dist/');
    assert.match(await machine.block('/etc/curlew/release.pub'), /flannel +0\.26\.1 +already applied/);
    assert.match(await machine.run(`curl -fs https://${HOST}/shop/install.sh`), '--require-signed');
    await publishImages(
      box,
      [
        {
          name: 'nginx',
          version: '1.27.0',
          images: { 'docker.io/library/nginx:1.27': makeImage([makeLayer({ a: 'b' })]) },
        },
      ],
      signal,
    );
    await cp(box.at('store'), machine.at('/srv/images'), { recursive: true });
    await machine.run(`curlew serve --store /srv/images
ln -s '${oracle('crane')}' /run/bin/crane`);
    await machine.block('crane pull');
    await machine.run('tar -tf nginx.tar manifest.json && test -s nginx/manifest.json');
    assert.equal(machine.left(), []);
  },
);

test.run();

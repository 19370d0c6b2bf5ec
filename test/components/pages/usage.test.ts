/** The commands of docs/usage.md, from an add-on in an empty folder to nodes that verify a signed bundle. */
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { installerSpec, noPageMachine, pageMachine } from '../support/page-machine.ts';
import { CLUSTER_PROGRAMS, startCluster, startWeb, WEB_PROGRAM } from '../support/page-servers.ts';

const test = suite('components/pages/usage', { timeoutMs: 300_000 });
const HOST = 'dl.example';

unless(noPageMachine(WEB_PROGRAM, ...CLUSTER_PROGRAMS, 'openssl'), test)(
  'every command of the page works',
  async () => {
    await using machine = await pageMachine('docs/usage.md', {
      hosts: [HOST],
      files: {
        'installer.yaml': installerSpec('web: { version: latest }'),
        'web.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: page, namespace: default }\ndata: { a: b }\n',
      },
    });
    await using cluster = await startCluster(machine);
    console.log(await machine.block('curlew new web'));
    assert.match(await cluster.kubectl(['get', 'configmap', 'page', '-o', 'name']), 'configmap/page');
    await machine.run(`curlew publish --to /srv/dist --release v1.3.0
curlew bundle installer.yaml --from /srv/dist -o /srv/older.tar.gz
mkdir addons/web/template
cat >addons/web/template/generate.sh <<'END'
#!/bin/bash
cd "$(dirname "$0")/.."
cp -r 0.1.0 0.2.0
sed -i s/0.1.0/0.2.0/g 0.2.0/*
echo "web_version=0.2.0" >>"$GITHUB_OUTPUT"
END
chmod +x addons/web/template/generate.sh`);
    console.log(await machine.block('curlew generate web'));
    await machine.run(`curlew keygen release && mkdir /media/one /media/two /srv/www
curlew bundle installer.yaml --from /srv/dist -o /srv/www/bundle.tar.gz`);
    await startWeb(machine, { [HOST]: '/srv/www' });
    await machine.block('curlew sign');
    assert.match(await machine.run('curl -fs -H "Accept: text/html" http://127.0.0.1:8080/'), 'web');
    assert.match(await machine.run('ls /media/one'), 'bundle.tar.gz.parts.json');
    console.log(await machine.block('curlew install --bundle bundle.tar.gz --dry-run'));
    await machine.run(
      'mkdir /etc/kubernetes && cp ~/.kube/config /etc/kubernetes/admin.conf && curlew install --bundle /srv/older.tar.gz',
    );
    console.log(await machine.block('bundle/upgrade.sh', { answer: 'y' }));
    await machine.run('rm -rf bundle');
    console.log(await machine.block('openssl dgst'));
    assert.equal(machine.left(), []);
  },
);

test.run();

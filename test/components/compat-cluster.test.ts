/** A node and a cluster that an older version has installed add-ons in: test/fixtures/compat. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { CLUSTER_MARK, eachOlder, FIRST, NODE, type Box } from '../support/compat.ts';
import { trace } from '../support/node-install.ts';
import { runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { clear, dataOf, decoded, envOf, secretOf } from './support/cluster-node.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/compat-cluster', { timeoutMs: 240_000 });
const older = eachOlder(test);
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();
const SECRET = 'kept-apart';
let server: ApiServer;

/** The node, and its ConfigMaps in this cluster, as if both had been made there. */
async function clusterBox(boxOf: Box): Promise<Tree> {
  await clear(server);
  const box = await boxOf('cluster', 'bundles');
  const uid = await server.kubectl(['get', 'namespace', 'kube-system', '-o', 'jsonpath={.metadata.uid}']);
  for (const path of ['cluster.json', `cluster/${NODE}/records.json`]) {
    await writeFile(box.at(path), (await readFile(box.at(path), 'utf8')).replaceAll(CLUSTER_MARK, uid));
  }
  await server.kubectl(['apply', '-f', box.at('cluster.json')]);
  return box;
}

/** What a command on the node prints. */
async function done(box: Tree, line: string): Promise<string> {
  const words = `${line} --install-dir ${box.at('cluster', NODE)}`.split(' ');
  const { exitCode, stdout, stderr } = await runTraced(words, box, envOf(box, server.kubeconfig));
  assert.is(exitCode, 0, `${line}\n${stdout}\n${stderr}`);
  return stdout;
}

const SAME = `install --bundle old.tar.gz --skip-images --preflights ignore --set web.adminPassword=${SECRET}`;
const NEWER = SAME.replace('old', 'new');

if (reason === undefined) {
  test.before(async () => {
    server = opened.keep(await startApiServer(opened.keep(await tree()).path));
    await server.kubectl(['create', 'namespace', 'kurl']);
  });
  test.after(opened.close);

  older('the records that it left in a cluster count, on its node and on one without records', async (boxOf) => {
    await using box = await clusterBox(boxOf);
    assert.not.match(await done(box, 'why web'), /^cluster/m);
    assert.match(await done(box, SAME), /^web +1\.0\.0 +already applied/m);
    await rm(box.at('cluster'), { recursive: true });
    assert.match(await done(box, SAME), /^web +1\.0\.0 +already applied/m);
    assert.ok(!(await trace(box)).some((line) => line.startsWith('web install')));
  });

  older(
    'a secret that it left in ConfigMaps is taken out of them, and the former state is kept',
    async (boxOf, made) => {
      // The next version has put secrets into Secrets already.
      if (made !== FIRST) return;
      await using box = await clusterBox(boxOf);
      assert.match(decoded((await dataOf(server, 'kurl-current-config'))['addons-web']), SECRET);
      assert.match(await done(box, NEWER), /^web +1\.0\.0 → 1\.1\.0 +installed, /m);
      for (const name of ['kurl-current-config', 'kurl-last-config']) {
        const [shown, kept] = [await dataOf(server, name), await secretOf(server, name)];
        assert.not.match(decoded(shown['addons-web']), SECRET, name);
        assert.match(decoded(kept?.['addons-web']), SECRET, name);
      }
      assert.match(decoded((await dataOf(server, 'kurl-last-config'))['addons-web']), '"version":"1.0.0"');
      await done(box, 'rollback web --skip-images');
      assert.ok((await trace(box)).includes('web install 1.0.0 hello found 1'));
      const records = await dataOf(server, 'curlew-records');
      assert.is((JSON.parse(records['addon.web'] ?? '') as { readonly version: string }).version, '1.0.0');
    },
  );

  older('what it noted in a cluster is removed with its add-ons', async (boxOf) => {
    await using box = await clusterBox(boxOf);
    await done(box, 'uninstall web --yes');
    assert.equal(await trace(box), ['web uninstall hello 1']);
    assert.equal(Object.keys(await dataOf(server, 'curlew-records')).toSorted(), ['addon.tools', 'cluster', 'format']);
  });
} else {
  test.skip('a cluster of an older version', reason);
}

test.run();

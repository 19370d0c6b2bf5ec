import { readFile, writeFile } from 'node:fs/promises';
import { bundleFacts, clusterPlan } from '../../src/app/cluster-plan.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { cluster, documents } from '../support/fleet-files.ts';
import { writePackage } from '../support/packages.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('app/cluster-plan');

test('settings that the packages of the bundle would refuse on a machine are refused before any is asked', async () => {
  await using box = await tree({});
  const settings: unknown = JSON.parse(await readFile('packages/kubernetes/template/files/schema.json', 'utf8'));
  await writePackage(box.at('bundle.tar.gz'), 'kubernetes', '1.37.2', [], { settings });
  const plan = async (kubernetes: object) => {
    const machine = { name: 'p1', role: 'control-plane', address: '127.0.0.1' };
    const machines = [{ ...machine, ssh: { port: 1, hostKey: `SHA256:${'A'.repeat(43)}` } }];
    const spec = { kubernetes: { version: 'v1.37.2' }, machines, installer: { kubernetes, other: { x: 1 } } };
    const context = {
      signal: never,
      report: noReport,
      env: { PATH: process.env['PATH'], HOME: box.path },
      cwd: box.path,
    };
    await writeFile(box.at('paris.yaml'), documents(cluster('paris', {}, spec)));
    return clusterPlan({ files: ['paris.yaml'], bundle: 'bundle.tar.gz' }, context);
  };
  const clusterConfiguration = 'apiServer:\n  extraArgs:\n';
  const { message, hint } = await assert.rejectsWith(
    plan({ clusterConfiguration, maxPodsPerNode: 'many' }),
    'SPEC_INVALID',
  );
  assert.match(
    message,
    /^cannot use bundle\.tar\.gz for \S+paris\.yaml: spec\.installer\.kubernetes\.maxPodsPerNode must be a whole number/,
  );
  assert.match(
    message,
    'spec.installer.kubernetes.clusterConfiguration.apiServer.extraArgs must be a list, but is null',
  );
  assert.is(hint, undefined);
  // The spec of the bundle has the rest.
  assert.equal((await plan({ maxPodsPerNode: 60, version: '1.37.x' })).refused, []);
});

test('the images of a bundle are counted by what is different in them', async () => {
  await using box = await tree({});
  const files = {
    'images/blobs/sha256/a': 'same',
    'images/blobs/sha256/b': 'same',
    'images/index.json': '{ }',
    x: '12',
  };
  const listed = Object.entries(files).map(([path, data]) => ({ path, data }));
  await writePackage(box.at('bundle.tar.gz'), 'kubernetes', '1.37.2', listed);
  const context = { signal: never, report: noReport, env: {}, cwd: box.path };
  const { images } = await bundleFacts('bundle.tar.gz', { file: 'paris.yaml', installer: {} }, context);
  assert.equal(images, [{ addon: 'kubernetes', imageFormat: 'oci', bytes: 7 }]);
});

test.run();

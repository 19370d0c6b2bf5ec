import { lastLines } from '../../../src/runtime/hooks/log-tail.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('the end of a log');

test('a long line keeps its end, where programs say why they have failed', async () => {
  const path = `"/etc/kubernetes/tmp/${'kubeadm-upgraded-manifests/'.repeat(20)}kube-apiserver.yaml"`;
  const line = `error: failed to write the manifest of kube-apiserver (${path}): no space left on device`;
  await using box = await tree({ log: `first\n${line}\nlast\n` });
  const [shown = '', last] = await lastLines(box.at('log'), 2);
  assert.match(
    shown,
    /^error: failed to write .*"\/etc\/kubernetes\/tmp\/.*….*kube-apiserver\.yaml"\): no space left on device$/,
  );
  assert.ok(shown.length < 410);
  assert.is(last, 'last');
});

test.run();

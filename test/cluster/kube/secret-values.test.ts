/** What is left of messages about Secrets. */
import { writeFile } from 'node:fs/promises';
import { openApi } from '../../../src/cluster/kube/api.ts';
import { apiPath, type ApiPath } from '../../../src/cluster/kube/path.ts';
import { withoutSecretValues } from '../../../src/cluster/kube/secret-values.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { startKubeServer } from '../../support/kube-server.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('cluster/kube/secret-values');

test('a message of helm is cut where it begins to be about a Secret, and keeps the field', () => {
  const message =
    'Error: UPGRADE FAILED: failed to create typed patch object (web/a; /v1, Kind=Secret): .stringData.pin: expected string, got &value.valueUnstructured{Value:48151623}';
  assert.is(
    withoutSecretValues(message),
    'Error: UPGRADE FAILED: failed to create typed patch object (web/a; /v1, Kind=Secret; .stringData.pin: expected string; values of Secrets are not shown',
  );
  const other = 'Error: UPGRADE FAILED: ConfigMap "a" is invalid: data[x]: Invalid value: "x"';
  assert.is(withoutSecretValues(other), other);
});

/** What is message about a write that a server refuses with this body. */
async function saidOf(body: string, path: ApiPath, status = 422): Promise<string> {
  await using box = await tree();
  await using server = await startKubeServer(() => ({ status, body }));
  await writeFile(box.at('conf'), server.kubeconfig());
  const api = await openApi({ env: { KUBECONFIG: box.at('conf') } });
  const answer = await api?.ask({ verb: 'apply', path, document: '{}' }, { signal: never });
  return answer?.kind === 'problem' ? `${answer.problem}: ${answer.message}` : 'an answer';
}

test('of a Secret that a server refuses, the message has fields and the reason, and no values', async () => {
  const message = 'failed to create typed patch object (x/a): .stringData.pin: expected string, got 48151623';
  const causes = [{ reason: 'FieldValueInvalid', field: 'data[pin]', message: 'Invalid value: "48151623"' }];
  const body = JSON.stringify({ kind: 'Status', reason: 'Invalid', message, details: { causes } });
  const secret = apiPath`/api/v1/namespaces/${'x'}/secrets/${'a'}?force=${'true'}`;
  assert.match(
    await saidOf(body, secret),
    /\(Invalid: data\[pin\]; \.stringData\.pin: expected string; values of Secrets are not shown\)$/,
  );
  assert.match(
    await saidOf(JSON.stringify({ kind: 'Status', message }), secret, 500),
    /^failed: .*\(Invalid: \.stringData\.pin: expected string; values of Secrets are not shown\)$/,
  );
  assert.match(await saidOf('denied: 48151623', secret), / returned 422$/);
  assert.match(await saidOf(body, apiPath`/api/v1/namespaces/${'x'}/configmaps/${'secrets'}`), '48151623');
});

test.run();

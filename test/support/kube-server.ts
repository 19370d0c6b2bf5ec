/** API servers made by tests: over TLS, with answers by path, and kubeconfigs that lead to them. */
import { usualCertificate, type TestCertificate } from './tls.ts';
import { startServer, type Asked, type Reply, type WebServer } from './web-server.ts';

export interface KubeServer extends WebServer {
  /** Certificate in PEM. */
  readonly ca: string;
  /** Text of a kubeconfig with this user and these further fields of the cluster. */
  readonly kubeconfig: (user?: object, cluster?: object) => string;
}

/** Answers with JSON what `answer` gives, or with the reply that it gives. */
export async function startKubeServer(
  answer: (asked: Asked) => Reply | { readonly json: unknown },
  certificate?: TestCertificate,
): Promise<KubeServer> {
  const { key, cert, ca } = certificate ?? (await usualCertificate());
  const regular = (asked: Asked): Reply => {
    const reply = answer(asked);
    return 'json' in reply ? { status: 200, body: JSON.stringify(reply.json) } : reply;
  };
  const server = await startServer(regular, { tls: { key, cert } });
  const kubeconfig = (user: object = { token: 'test-token' }, cluster: object = {}): string =>
    kubeconfigText(server.url, user, { 'certificate-authority-data': Buffer.from(ca).toString('base64'), ...cluster });
  return { ...server, ca, kubeconfig };
}

/** JSON is YAML. */
export function kubeconfigText(server: string, user: object, cluster: object): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, ...cluster } }],
    users: [{ name: 'admin', user }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
    'current-context': 'test',
  });
}

/** An answer of an API server that is no success. */
export function statusReply(status: number, reason: string, message: string = reason): Reply {
  const body = { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, reason, code: status };
  return { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

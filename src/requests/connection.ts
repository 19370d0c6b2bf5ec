/** Fields of requests that connect to registries, web servers and stores. */
import { flag, path, text, texts } from '../core/field.ts';
import type { RequestOf } from '../core/request.ts';

const network = { group: 'Network options' } as const;
const kept = { ...network, located: true, plan: 'kept' } as const;

export const CONFIG = { config: path('FILE', 'configuration file (default: ~/.config/curlew/config.json)', kept) };

const CA_FILE = { caFile: path('FILE', 'additional trusted certificate authorities, in PEM', kept) };

/** Web servers, without registries. */
export const WEB = {
  allowHttp: texts('HOST', 'use plain HTTP for this host; can be repeated', { ...network, plan: 'kept' }),
  ...CA_FILE,
  ...CONFIG,
};
export type WebRequest = RequestOf<typeof WEB>;

export const NETWORK = {
  registryMirror: texts(
    'HOST=MIRROR',
    'use MIRROR (host:port[/project]) before registry HOST; can be repeated',
    network,
  ),
  allowHttp: WEB.allowHttp,
  trustRealm: texts('HOST', "allow this host to receive a registry's credentials; can be repeated", network),
  anyPlatform: texts('IMAGE', 'accept this image although it names no platform; can be repeated', network),
  ...CA_FILE,
  ...CONFIG,
};
export type NetworkRequest = RequestOf<typeof NETWORK>;

const s3 = { group: 'S3 options', located: true, plan: 'kept' } as const;

/** Stores in folders and S3. */
export const STORE = {
  s3Endpoint: text('URL', 'server other than AWS (default: $AWS_ENDPOINT_URL_S3)', s3),
  s3Region: text('REGION', 'region of the bucket (default: $AWS_REGION)', s3),
  s3Profile: text('NAME', 'profile with the credentials (default: $AWS_PROFILE)', s3),
  s3PathStyle: flag('put the bucket in the path instead of the host name (default with an endpoint)', s3),
  ...CA_FILE,
  ...CONFIG,
};
export type StoreRequest = RequestOf<typeof STORE>;

/** A path, or an address of a web server or in S3. */
export const ADDRESS = { ...WEB, ...STORE };
export type AddressRequest = RequestOf<typeof ADDRESS>;

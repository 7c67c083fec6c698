import java.io.FileInputStream;
import java.security.KeyStore;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;

/** The key stores of a folder: what broker, gatekeeper and gateway show, and whom they believe. */
final class Keys {
    private final String folder;
    private final String password;

    Keys(String folder, String password) {
        this.folder = folder;
        this.password = password;
    }

    /** Where the key store of this name is. */
    String path(String name) {
        return folder + "/" + name + ".p12";
    }

    /** Of every key store, and of the keys in them. */
    String password() {
        return password;
    }

    /** The key store of this name. */
    KeyStore store(String name) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (FileInputStream stream = new FileInputStream(path(name))) {
            store.load(stream, password.toCharArray());
        }
        return store;
    }

    KeyManager[] shown(String name) throws Exception {
        KeyManagerFactory factory = KeyManagerFactory.getInstance("PKIX");
        factory.init(store(name), password.toCharArray());
        return factory.getKeyManagers();
    }

    TrustManager[] believed() throws Exception {
        TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
        factory.init(store("anchors"));
        return factory.getTrustManagers();
    }
}

-- Tables of Arrowhead's Java systems (4.6) as far as the test fills them: their names, columns and types.
CREATE DATABASE arrowhead DEFAULT CHARACTER SET utf8mb4;
USE arrowhead;
SET time_zone = '+00:00';
CREATE TABLE service_interface (id bigint PRIMARY KEY AUTO_INCREMENT, interface_name varchar(255) UNIQUE, created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP);
CREATE TABLE service_definition (id bigint PRIMARY KEY AUTO_INCREMENT, service_definition varchar(255) NOT NULL UNIQUE, created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE system_ (id bigint PRIMARY KEY AUTO_INCREMENT, system_name varchar(255) NOT NULL, address varchar(255) NOT NULL, address_type varchar(255), port int NOT NULL,
    authentication_info varchar(2047), metadata mediumtext, created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, updated_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    UNIQUE KEY triple (system_name, address, port));
CREATE TABLE service_registry (id bigint PRIMARY KEY AUTO_INCREMENT, service_id bigint NOT NULL, system_id bigint NOT NULL, service_uri varchar(255) NOT NULL DEFAULT '',
    end_of_validity timestamp NULL, secure varchar(255) NOT NULL DEFAULT 'NOT_SECURE', metadata mediumtext, version int DEFAULT 1,
    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, updated_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    CONSTRAINT of_service FOREIGN KEY (service_id) REFERENCES service_definition (id) ON DELETE CASCADE,
    CONSTRAINT of_system FOREIGN KEY (system_id) REFERENCES system_ (id) ON DELETE CASCADE);
CREATE TABLE service_registry_interface_connection (id bigint PRIMARY KEY AUTO_INCREMENT, service_registry_id bigint NOT NULL, interface_id bigint NOT NULL);
CREATE TABLE authorization_intra_cloud (id bigint PRIMARY KEY AUTO_INCREMENT, created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, updated_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    consumer_system_id bigint NOT NULL, provider_system_id bigint NOT NULL, service_id bigint NOT NULL);
CREATE TABLE authorization_intra_cloud_interface_connection (id bigint PRIMARY KEY AUTO_INCREMENT, authorization_intra_cloud_id bigint NOT NULL, interface_id bigint NOT NULL);
CREATE TABLE cloud (id bigint PRIMARY KEY AUTO_INCREMENT, operator varchar(255) NOT NULL, name varchar(255) NOT NULL, secure int(1) NOT NULL DEFAULT 0, neighbor int(1) NOT NULL DEFAULT 0,
    own_cloud int(1) NOT NULL DEFAULT 0, authentication_info varchar(2047), created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, updated_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE foreign_system (id bigint PRIMARY KEY AUTO_INCREMENT, provider_cloud_id bigint NOT NULL, system_name varchar(255) NOT NULL, address varchar(255) NOT NULL, port int NOT NULL,
    authentication_info varchar(2047), metadata mediumtext, created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, updated_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE orchestrator_store (id bigint PRIMARY KEY AUTO_INCREMENT, consumer_system_id bigint NOT NULL, provider_system_id bigint NOT NULL, foreign_ int(1) NOT NULL DEFAULT 0,
    service_id bigint NOT NULL, service_interface_id bigint NOT NULL, priority int NOT NULL, attribute text, created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE event_type (id bigint PRIMARY KEY AUTO_INCREMENT, event_type_name varchar(255) NOT NULL UNIQUE, created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE subscription (id bigint PRIMARY KEY AUTO_INCREMENT, system_id bigint NOT NULL, event_type_id bigint NOT NULL, filter_meta_data mediumtext, match_meta_data int(1) NOT NULL DEFAULT 0,
    only_predefined_publishers int(1) NOT NULL DEFAULT 0, notify_uri text NOT NULL, start_date timestamp NULL, end_date timestamp NULL,
    created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, updated_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE subscription_publisher_connection (id bigint PRIMARY KEY AUTO_INCREMENT, subscription_id bigint NOT NULL, system_id bigint NOT NULL, authorized int(1) NOT NULL DEFAULT 0);
CREATE TABLE logs (log_id varchar(100) PRIMARY KEY, message mediumtext);
CREATE TABLE choreographer_plan (id bigint PRIMARY KEY AUTO_INCREMENT, name varchar(255));

INSERT INTO service_interface (id, interface_name) VALUES (1, 'HTTP-SECURE-JSON'), (2, 'HTTP-INSECURE-JSON'), (30, 'MQTT-INSECURE-JSON');
INSERT INTO service_definition (id, service_definition) VALUES (50, 'temperature');
INSERT INTO system_ (id, system_name, address, address_type, port, authentication_info, metadata, created_at) VALUES
    (41, 'sensor', '192.0.2.41', 'IPV4', 9000, 'MIIB', 'note=it%27s+%22so%22%2C+a%3Db%5Cc%0A%C3%BC, room=7', '2020-01-02 03:04:05'),
    (42, 'display', 'display.plant.example', 'HOSTNAME', 9001, NULL, NULL, '2020-01-02 03:04:05');
INSERT INTO service_registry (id, service_id, system_id, service_uri, secure, metadata, version) VALUES (70, 50, 41, '/t?a=''b''', 'NOT_SECURE', NULL, 3);
INSERT INTO service_registry_interface_connection (service_registry_id, interface_id) VALUES (70, 2), (70, 30);
INSERT INTO authorization_intra_cloud (id, consumer_system_id, provider_system_id, service_id) VALUES (90, 42, 41, 50);
INSERT INTO authorization_intra_cloud_interface_connection (authorization_intra_cloud_id, interface_id) VALUES (90, 2);
INSERT INTO cloud (id, operator, name, secure, neighbor, own_cloud, authentication_info) VALUES (2, 'acme', 'harbour', 1, 1, 0, 'MIIC');
INSERT INTO foreign_system (id, provider_cloud_id, system_name, address, port) VALUES (1, 2, 'crane', '198.51.100.1', 1);
INSERT INTO orchestrator_store (id, consumer_system_id, provider_system_id, foreign_, service_id, service_interface_id, priority) VALUES (110, 42, 41, 0, 50, 2, 9), (111, 42, 1, 1, 50, 2, 4);
INSERT INTO event_type (id, event_type_name) VALUES (120, 'OVERHEATED');
INSERT INTO subscription (id, system_id, event_type_id, filter_meta_data, match_meta_data, only_predefined_publishers, notify_uri) VALUES (130, 42, 120, 'unit=celsius', 1, 1, 'hot');
INSERT INTO subscription_publisher_connection (subscription_id, system_id, authorized) VALUES (130, 41, 1);
INSERT INTO logs VALUES ('x', 'a line\nwith ''quotes'' and a ; in it');
INSERT INTO choreographer_plan (id, name) VALUES (1, 'x');
